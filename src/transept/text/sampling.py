"""Subword regularization: random segmentations of a text into subwords.

BPE-dropout (Provilkov et al. 2020) skips merges at random. For a unigram vocabulary, a segmentation
is drawn with a probability proportional to P(segmentation)^α (Kudo 2018). sentencepiece has both,
but its random numbers differ from process to process, even with a seed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise, repeat
from random import Random

from transept.errors import ConfigError, Problem
from transept.text.tokenizer import SPACE_SYMBOL, Tokenizer

VARIANTS = 16
"""Number of random segmentations of a word. Those of common words are drawn once and looked up."""
CACHED = 1 << 18
"""Maximum number of segmentations in memory."""
IMPOSSIBLE = -math.inf
"""The score of two subwords that cannot be merged."""


class SubwordSampler:
    """Draws the subwords of texts. The draws depend on the text and the seed, and nothing else."""

    def __init__(self, tokenizer: Tokenizer, dropout: float, seed: int) -> None:
        """Sample with a vocabulary.

        Args:
            tokenizer: The vocabulary.
            dropout: BPE: the probability of skipping a merge. Unigram: the exponent α.
            seed: Determines the draws.
        """
        # Imported here to keep `--help` fast.
        from sentencepiece import SentencePieceProcessor

        if tokenizer.kind not in ("bpe", "unigram"):
            what = "is not supported for a vocabulary of another program; omit it"
            raise ConfigError([Problem("subword_dropout", what)])
        self._tokenizer, self._dropout, self._seed = tokenizer, dropout, seed
        self._pieces = tokenizer.pieces_of(range(tokenizer.vocab_size))
        self._first = self._pieces.index("<0xFF>") + 1
        learnt = range(self._first, tokenizer.vocab_size)
        self._ids = {self._pieces[index]: index for index in learnt}
        model = SentencePieceProcessor(model_proto=tokenizer.model)
        self._scores = {self._pieces[index]: float(model.get_score(index)) for index in learnt}
        self._merges = [len(piece) - 1 for piece in self._pieces]
        self._begins = [piece.startswith(SPACE_SYMBOL) for piece in self._pieces]
        self._is_bpe = tokenizer.kind == "bpe"
        self._variant = lru_cache(CACHED)(self._draw)

    def __reduce__(self) -> tuple[type["SubwordSampler"], tuple[Tokenizer, float, int]]:
        return SubwordSampler, (self._tokenizer, self._dropout, self._seed)

    def sample(
        self, texts: Sequence[str], encoded: Sequence[Sequence[int]], copy: int = 0
    ) -> list[list[int]]:
        """Return random ids of each text, which decode to it.

        Args:
            texts: The texts.
            encoded: The ids of each text according to the tokenizer.
            copy: Each copy has its own draws.
        """
        return [
            [*self._resampled(ids, Random(f"{self._seed} {copy} {text}"))]
            for text, ids in zip(texts, encoded, strict=True)
        ]

    def _resampled(self, ids: Sequence[int], random: Random) -> Iterator[int]:
        """Replace the subwords of each word. Bytes and special entries are never split."""
        word: list[int] = []
        for index in ids:
            if word and (index < self._first or self._begins[index]):
                yield from self._word(word, random)
                word = []
            if index < self._first:
                yield index
            else:
                word.append(index)
        if word:
            yield from self._word(word, random)

    def _word(self, ids: Sequence[int], random: Random) -> Sequence[int]:
        """Draw the subwords of a word.

        With BPE-dropout, most words keep theirs, and only the others need to be merged again.
        """
        n_merges = sum(self._merges[index] for index in ids)
        if self._is_bpe and random.random() < (1 - self._dropout) ** n_merges:
            return ids
        word = "".join(self._pieces[index] for index in ids)
        return self._variant(word, n_merges, random.randrange(VARIANTS))

    def _draw(self, word: str, n_merges: int, variant: int) -> tuple[int, ...]:
        random = Random(f"{self._seed} {variant} {word}")
        if self._is_bpe:
            drawn = merged(word, self._scores, some_skipped(n_merges, self._dropout, random))
        else:
            drawn = sample_unigram(word, self._scores, self._dropout, random)
        return tuple(self._ids[subword] for subword in drawn)


def bpe_dropout(
    word: str, scores: Mapping[str, float], dropout: float, random: Random
) -> list[str]:
    """Merge characters into subwords, and skip each merge with a probability.

    Without dropout, this is byte-pair encoding.
    """
    return merged(word, scores, _chances(dropout, random))


def some_skipped(n_merges: int, dropout: float, random: Random) -> Iterator[bool]:
    """Which merges are skipped, if at least one of the first `n_merges` is."""
    (first,) = random.choices(range(n_merges), [(1 - dropout) ** n for n in range(n_merges)])
    return chain(repeat(False, first), [True], _chances(dropout, random))


def _chances(dropout: float, random: Random) -> Iterator[bool]:
    while True:
        yield random.random() < dropout


def merged(word: str, scores: Mapping[str, float], skips: Iterator[bool]) -> list[str]:
    """Merge characters into subwords, the highest score first.

    Args:
        word: The characters.
        scores: The score of each subword.
        skips: Whether each possible merge is skipped, the best one of each step first.
    """
    symbols = [*word]
    found = [scores.get(left + right, IMPOSSIBLE) for left, right in pairwise(symbols)]
    while True:
        # Whether a merge is skipped matters only if all better ones are skipped, too.
        skipped = {}
        while (best := max(found, default=IMPOSSIBLE)) > IMPOSSIBLE and next(skips):
            at = found.index(best)
            skipped[at], found[at] = best, IMPOSSIBLE
        if best == IMPOSSIBLE:
            return symbols
        for at, score in skipped.items():
            found[at] = score
        at = found.index(best)
        symbols[at : at + 2] = ["".join(symbols[at : at + 2])]
        del found[at]
        for changed in range(max(at - 1, 0), min(at + 1, len(found))):
            found[changed] = scores.get("".join(symbols[changed : changed + 2]), IMPOSSIBLE)


def sample_unigram(
    word: str, scores: Mapping[str, float], alpha: float, random: Random
) -> list[str]:
    """Draw a segmentation with a probability proportional to exp(α · the sum of its scores)."""
    last: list[dict[int, float]] = [{0: 0.0}]
    """For each end of a subword, the log-weight of the segmentations by the start of the last."""
    totals = [0.0]
    for end in range(1, len(word) + 1):
        starts = {
            start: totals[start] + alpha * scores[word[start:end]]
            for start in range(end)
            if word[start:end] in scores
        }
        last.append(starts)
        highest = max(starts.values(), default=-math.inf)
        total = sum(math.exp(weight - highest) for weight in starts.values())
        totals.append(highest + math.log(total) if starts else -math.inf)
    subwords, end = [], len(word)
    while end:
        weights = [math.exp(weight - totals[end]) for weight in last[end].values()]
        (start,) = random.choices([*last[end]], weights)
        subwords.append(word[start:end])
        end = start
    return subwords[::-1]
