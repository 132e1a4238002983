"""Statistics of a prepared corpus: sentence lengths and unknown tokens."""

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
    """Statistics of one side. Lengths include EOS; the unknown rate does not."""

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
    """Compute the statistics of one side of a non-empty corpus."""
    # "lower" gives a length that occurs; interpolation might not.
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
    """Sample random pairs, returned in corpus order."""
    for side, tokenizer in zip(SIDES, tokenizers, strict=True):
        expected = getattr(corpus.manifest.settings, f"{side}_tokenizer")
        if tokenizer.sha256 != expected:
            raise VocabularyError(
                f"{corpus.directory}: the {side} was prepared with another tokenizer (sha256 "
                f"{expected[:12]}…, not {tokenizer.sha256[:12]}…); use that one"
            )
    chosen = np.random.default_rng(seed).choice(
        len(corpus), size=min(count, len(corpus)), replace=False
    )
    source, target = tokenizers
    return [
        Sample(
            index=index,
            source=source.decode(corpus.source(index).tolist()),
            target=target.decode(corpus.target(index).tolist()),
        )
        for index in sorted(chosen.tolist())
    ]
