"""Data and batch settings of section 5.1. Importing this module does not import numpy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transept.config import Checks


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig:
    """One of the prepared corpora to train on."""

    path: Path
    """The directory that `transept data prepare` wrote."""
    weight: float = 1.0
    """How often each pair occurs per epoch: 2 means twice, 0.5 a different random half each
    epoch."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(0 < self.weight < float("inf"), "weight", "must be positive and finite")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class SubwordSampling:
    """Subword regularization: several random segmentations of each pair for training."""

    subword_dropout: float = 0.0
    """Sample the subwords. BPE: the probability of skipping a merge. Unigram: the exponent of the
    probabilities; less is more random. 0.1 suits both; 0 does not sample."""
    copies: int = 1
    """How often each pair is encoded, each time with other subwords."""
    sides: Literal["both", "source"] = "both"
    """Which sides are sampled. A decoder that is trained on random subwords also writes them."""
    seed: int = 1
    """Determines the subwords."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.fraction("subword_dropout")
        checks.at_least(1, "copies")
        checks.at_least(0, "seed")
        sampled = self.subword_dropout > 0 or self.copies == 1
        checks.that(sampled, "copies", "would all be the same; set subword_dropout")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig:
    """Section 5.1: about 25,000 source and 25,000 target tokens per batch."""

    source_tokens: int = 25_000
    """Maximum source positions per global batch, including padding."""
    target_tokens: int = 25_000
    """Maximum target positions per global batch, including padding. Both sides of a tile have the
    same size, so the `packed` layout uses the smaller of the two limits."""
    layout: Literal["packed", "by_length"] = "packed"
    """Pairs of mixed lengths packed into tiles, or, as in the paper, pairs of similar length in
    padded rows."""
    tile: int = 128
    """Positions on each side of a tile. A pair fits into one tile, or takes several whole tiles."""
    micro_batches: int = 1
    """Equal parts of a global batch, accumulated on a small device or divided among ranks."""
    window: int = 2**17
    """Approximate number of pairs that are planned together. A larger window fills batches
    better. A run that resumes has to plan one window again."""
    max_length: int = 250
    """Maximum tokens on either side of a pair, including EOS. Longer pairs are skipped and
    counted."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        counts = ("tile", "micro_batches", "window", "max_length")
        checks.at_least(1, *counts)
        if all(getattr(self, name) >= 1 for name in counts):
            # The longest pair must fit into a micro-batch.
            longest = self.max_length if self.layout == "by_length" else self.row_tiles * self.tile
            least = longest * self.micro_batches
            for key in ("source_tokens", "target_tokens"):
                checks.that(
                    getattr(self, key) >= least,
                    key,
                    f"must be at least {least:,}, so that each of the micro_batches = "
                    f"{self.micro_batches} holds a pair of max_length = {self.max_length}",
                )
        checks.done()

    @property
    def row_tiles(self) -> int:
        """Tiles of the longest pair. In rows of this many tiles, no pair crosses a row boundary."""
        return -(-self.max_length // self.tile)

    @property
    def tiles(self) -> int:
        """Tiles per micro-batch in the `packed` layout: whole rows within the budget."""
        budget = min(self.source_tokens, self.target_tokens) // self.micro_batches
        return budget // (self.tile * self.row_tiles) * self.row_tiles


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """The prepared corpora of an experiment."""

    train: tuple[CorpusConfig, ...] = ()
    """The training corpora, mixed by their weights."""
    dev: Path | None = None
    """The prepared corpus for validation. None: no validation."""
    workers: int = 1
    """Number of processes that read batches ahead. 0 reads each batch when it is needed. The
    batches are the same."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(0, "workers")
        checks.done()
