"""Sentence pairs that follow from a seed, and three splits that share none of them."""

from collections.abc import Sequence, Set
from typing import Final, NamedTuple

from grammar.combinations import Combination, combinations, hold_out
from grammar.dice import Dice
from grammar.draw_sentences import Sentences
from grammar.examples import EXAMPLES
from grammar.lexicon import lexicon
from grammar.pairs import SentencePair, pair, tokens

LONGEST: Final = 11
"""Words of a sentence, at most; what is drawn longer is passed over."""

_PATIENCE: Final = 100_000
"""A split is taken to be impossible when this number of draws in a row yields no new pair."""

_NOTHING: Final[frozenset[Combination]] = frozenset()


class Splits(NamedTuple):
    """Pairs to learn from, to choose settings on, and to test with once."""

    train: list[SentencePair]
    dev: list[SentencePair]
    test: list[SentencePair]


class _Split(NamedTuple):
    """What one of them is to be."""

    name: str
    size: int
    seed: int | str
    without: Set[Combination] = _NOTHING
    """None of these occurs in it."""
    with_one_of: Set[Combination] | None = None
    """One of these occurs in each of its sentences."""
    words: tuple[Set[str], ...] | None = None
    """No other English and no other German words occur in it."""

    def means(self, found: list[Combination]) -> bool:
        """Whether it takes a meaning with these combinations."""
        if not self.without.isdisjoint(found):
            return False
        return self.with_one_of is None or not self.with_one_of.isdisjoint(found)

    def says(self, made: SentencePair) -> bool:
        """Whether it takes a sentence of these words."""
        if max(made.source.count(" "), made.target.count(" ")) >= LONGEST:
            return False
        if self.words is None:
            return True
        return all(words <= known for words, known in zip(_words((made,)), self.words, strict=True))


class Grammar:
    """A small grammar of English and German, in which a sentence has one translation.

    Example:
        >>> source, target, alignment = Grammar().pairs(1, seed=7)[0]
        >>> print(source, target)
        He meets the men here. Er trifft die Männer hier.
    """

    def pairs(self, n: int, *, seed: int) -> list[SentencePair]:
        """The first `n` pairs that follow from `seed`; no English sentence comes twice."""
        return _draw(_Split("pairs", n, seed), set())

    def splits(
        self, *, train: int = 80_000, dev: int = 1_000, test: int = 1_000, seed: int = 1
    ) -> Splits:
        """Three lists of pairs that share no sentence on either side. Default: those of the demo.

        A tenth of all combinations of verb and object, adjective and noun, preposition and noun
        never occurs in train. Every sentence of test contains one that is held out for it, every
        sentence of dev one of the others. All their words, in the form they have there, do occur
        in train. So dev and test measure whether known words are combined correctly.

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
    """Draw a split whose sentences are not `taken`, and add them to those."""
    if split.size < 0:
        raise ValueError(f"{split.name}: {split.size} pairs are requested; give 0 or more")
    sentences = Sentences(lexicon(), Dice(split.seed))
    drawn: dict[str, SentencePair] = {}
    in_vain = 0
    while len(drawn) < split.size:
        meaning = sentences.draw()
        if split.means(combinations(meaning)):
            made = pair(meaning)
            if made.source not in drawn and taken.isdisjoint(made[:2]) and split.says(made):
                drawn[made.source] = made
                in_vain = 0
                continue
        in_vain += 1
        if in_vain == _PATIENCE:
            raise ValueError(_shortage(split, len(drawn)))
    taken.update(sentence for made in drawn.values() for sentence in made[:2])
    return list(drawn.values())


def _shortage(split: _Split, n: int) -> str:
    cure = f"ask for fewer than {split.size:,}"
    if split.words is not None:
        cure += ", or for a larger train, whose words are all that it may use"
    return f"{split.name}: the grammar found {n:,} pairs and then no other; {cure}"


def _words(pairs: Sequence[SentencePair]) -> tuple[set[str], set[str]]:
    """The English words, and the German."""
    source = {word for made in pairs for word in tokens(made.source)}
    target = {word for made in pairs for word in tokens(made.target)}
    return source, target
