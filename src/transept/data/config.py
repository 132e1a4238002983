"""What section 5.1 fixes about data and batches. No numpy here: reading a config costs nothing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transept.config import Checks


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig:
    """One prepared corpus among those that are trained on."""

    path: Path
    """The directory that `transept data prepare` wrote."""
    weight: float = 1.0
    """How often an epoch takes each pair: 2 is twice, 0.5 another random half each epoch."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(0 < self.weight < float("inf"), "weight", "must be more than 0, and finite")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchConfig:
    """Section 5.1: about 25,000 source and 25,000 target tokens to a batch."""

    source_tokens: int = 25_000
    """Places for source tokens in a global batch, at most."""
    target_tokens: int = 25_000
    """Places for target tokens in a global batch, at most. Tiles have both sides alike, so the
    smaller of the two counts for the `packed` layout."""
    layout: Literal["packed", "by_length"] = "packed"
    """Pairs of mixed lengths packed into tiles; or, as in the paper, pairs of similar length in
    padded rows."""
    tile: int = 128
    """Places on either side of a tile. A pair lies in one tile; a longer one takes whole tiles."""
    micro_batches: int = 1
    """Equal parts of a global batch, accumulated on a small device or divided among ranks."""
    window: int = 2**17
    """About so many pairs of the shuffled epoch are planned together. A larger window fills batches
    better; a run that resumes has to plan one window again."""
    max_length: int = 250
    """The longest side of a pair, in tokens with EOS. Longer pairs are left out, and counted."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        counts = ("tile", "micro_batches", "window", "max_length")
        checks.at_least(1, *counts)
        if all(getattr(self, name) >= 1 for name in counts):
            # A budget too small for the longest pair would leave it nowhere to go.
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
        """Tiles that the longest pair takes: in rows of so many, no pair crosses a row's end."""
        return -(-self.max_length // self.tile)

    @property
    def tiles(self) -> int:
        """Tiles of a micro-batch in the `packed` layout: whole rows, and within the budget."""
        budget = min(self.source_tokens, self.target_tokens) // self.micro_batches
        return budget // (self.tile * self.row_tiles) * self.row_tiles


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """The prepared corpora of an experiment."""

    train: tuple[CorpusConfig, ...] = ()
    """What is learnt from; several corpora are mixed by their weights."""
    dev: Path | None = None
    """The prepared corpus that validation looks at. None: no validation."""
    workers: int = 1
    """Processes that read batches ahead; 0 reads each when it is asked for. The batches are the
    same."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(0, "workers")
        checks.done()
