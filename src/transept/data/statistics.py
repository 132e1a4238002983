"""A prepared corpus in figures: how long its sentences are, how much of it is unknown."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transept.data.shards import SIDES, Corpus, SideSummary
from transept.errors import VocabularyError
from transept.text.symbols import Vocabulary

PERCENTILES = (50, 75, 90, 95, 99)


@dataclass(frozen=True, kw_only=True, slots=True)
class SideStatistics:
    """One side. Lengths are in tokens, with EOS; the unknown rate leaves EOS out."""

    tokens: int
    unknown: int
    unknown_rate: float
    mean: float
    percentiles: dict[int, int]
    shortest: int
    longest: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A pair as text."""

    index: int
    source: str
    target: str


def side_statistics(lengths: NDArray[np.int64], summary: SideSummary) -> SideStatistics:
    """The figures of one side of a corpus that is not empty."""
    # "lower" is a length that occurs; interpolation would invent one.
    values = np.percentile(lengths, PERCENTILES, method="lower").astype(np.int64)
    words = summary.tokens - len(lengths)
    return SideStatistics(
        tokens=summary.tokens,
        unknown=summary.unknown,
        unknown_rate=summary.unknown / words if words else 0.0,
        mean=float(lengths.mean()),
        percentiles=dict(zip(PERCENTILES, values.tolist(), strict=True)),
        shortest=int(lengths.min()),
        longest=int(lengths.max()),
    )


def samples(
    corpus: Corpus, count: int, seed: int, tokenizers: Sequence[Vocabulary]
) -> list[Sample]:
    """Some pairs, drawn at random, in the order of the corpus."""
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        expected = getattr(corpus.manifest.settings, f"{side}_tokenizer")
        if tokenizer.sha256 != expected:
            raise VocabularyError(
                f"{corpus.directory}: the {side} was not made with this tokenizer (its sha256 is "
                f"{tokenizer.sha256[:12]}…, not {expected[:12]}…); give the one that made it"
            )
    drawn = np.random.default_rng(seed).choice(
        len(corpus), size=min(count, len(corpus)), replace=False
    )
    source, target = tokenizers
    return [
        Sample(
            index=index,
            source=source.decode(corpus.source(index).tolist()),
            target=target.decode(corpus.target(index).tolist()),
        )
        for index in sorted(drawn.tolist())
    ]
