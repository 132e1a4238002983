"""Generates sentence pairs from a seed, and three disjoint splits of them."""

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from grammar.combinations import Combination, combinations, hold_out
from grammar.dice import Dice
from grammar.draw_sentences import Sentences
from grammar.examples import EXAMPLES
from grammar.lexicon import lexicon
from grammar.pairs import SentencePair, pair, tokens

LONGEST: Final = 11
"""Maximum words per sentence. Longer samples are skipped."""

_PATIENCE: Final = 100_000
"""A split is considered impossible after this many samples in a row without a new pair."""

_NOTHING: Final[frozenset[Combination]] = frozenset()


class Splits(NamedTuple):
    """Pairs for training, for choosing settings, and for the final test."""

    train: list[SentencePair]
    dev: list[SentencePair]
    test: list[SentencePair]


class _Split(NamedTuple):
    """The requirements of one split."""

    name: str
    size: int
    seed: int | str
    without: Set[Combination] = _NOTHING
    """Combinations that must not occur."""
    with_one_of: Set[Combination] | None = None
    """Each sentence must contain one of these combinations."""
    words: tuple[Set[str], ...] | None = None
    """The only English and German words that may occur."""

    def allows_meaning(self, found: list[Combination]) -> bool:
        """Whether a meaning with these combinations is allowed."""
        if not self.without.isdisjoint(found):
            return False
        return self.with_one_of is None or not self.with_one_of.isdisjoint(found)

    def allows_pair(self, made: SentencePair) -> bool:
        """Whether the length and the words of this pair are allowed."""
        if max(made.source.count(" "), made.target.count(" ")) >= LONGEST:
            return False
        if self.words is None:
            return True
        return all(words <= known for words, known in zip(_words((made,)), self.words, strict=True))


class Grammar:
    """A small grammar of English and German, in which each sentence has one translation.

    Example:
        >>> source, target, alignment = Grammar().pairs(1, seed=7)[0]
        >>> print(source, target)
        He meets the men here. Er trifft die Männer hier.
    """

    def pairs(self, n: int, *, seed: int) -> list[SentencePair]:
        """Generate `n` pairs from `seed`. No English sentence occurs twice."""
        return _draw(_Split("pairs", n, seed), set())

    def splits(
        self, *, train: int = 80_000, dev: int = 1_000, test: int = 1_000, seed: int = 1
    ) -> Splits:
        """Generate three splits that share no sentence on either side. Default: those of the demo.

        A tenth of all combinations of verb and object, adjective and noun, preposition and noun
        never occur in train. Half of them are held out for test, the others for dev, and every
        sentence of test and dev contains one. All word forms of dev and test do occur in train. So
        dev and test measure whether known words are combined correctly.

        Raises:
            ValueError: Train is too small to contain all words that dev and test need.
        """
        held = hold_out(lexicon(), seed)
        taken = {sentence for example in EXAMPLES for sentence in example}
        learnt = _draw(_Split("train", train, f"{seed} train", held.dev | held.test), taken)
        words = _words(learnt)
        chosen = _draw(_Split("dev", dev, f"{seed} dev", held.test, held.dev, words), taken)
        tested = _draw(_Split("test", test, f"{seed} test", held.dev, held.test, words), taken)
        return Splits(learnt, chosen, tested)


def _draw(split: _Split, taken: set[str]) -> list[SentencePair]:
    """Sample a split without sentences that are `taken`, and add its sentences to `taken`."""
    if split.size < 0:
        raise ValueError(f"{split.name}: {split.size} pairs are requested; give 0 or more")
    sentences = Sentences(lexicon(), Dice(split.seed))
    drawn: dict[str, SentencePair] = {}
    rejected = 0
    while len(drawn) < split.size:
        meaning = sentences.draw()
        if split.allows_meaning(combinations(meaning)):
            made = pair(meaning)
            if made.source not in drawn and taken.isdisjoint(made[:2]) and split.allows_pair(made):
                drawn[made.source] = made
                rejected = 0
                continue
        rejected += 1
        if rejected == _PATIENCE:
            raise ValueError(_shortage(split, len(drawn)))
    taken.update(sentence for made in drawn.values() for sentence in made[:2])
    return list(drawn.values())


def _shortage(split: _Split, n: int) -> str:
    cure = f"request fewer than {split.size:,}"
    if split.words is not None:
        cure += ", or a larger train, which limits the words of the other splits"
    return f"{split.name}: the grammar found only {n:,} pairs; {cure}"


def _words(pairs: Sequence[SentencePair]) -> tuple[set[str], set[str]]:
    """Return the English and the German words."""
    source = {word for made in pairs for word in tokens(made.source)}
    target = {word for made in pairs for word in tokens(made.target)}
    return source, target
