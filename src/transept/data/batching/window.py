"""A window of the shuffled epoch, and the batches that it is planned into."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.mixture import Numbers
from transept.data.config import BatchConfig


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Some pairs of the mixture, with their lengths."""

    numbers: Numbers
    """Which they are, by their numbers in the mixture."""
    sources: NDArray[np.int32]
    """Tokens of each source sentence."""
    targets: NDArray[np.int32]
    """Tokens of each target sentence."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: slice | NDArray[np.generic]) -> "Pairs":
        return Pairs(self.numbers[which], self.sources[which], self.targets[which])

    @classmethod
    def joined(cls, parts: "Sequence[Pairs]") -> "Pairs":
        """All of these, one after another."""
        return cls(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.targets for part in parts]),
        )

    @property
    def longest(self) -> NDArray[np.int32]:
        """The longer side of each pair."""
        return np.maximum(self.sources, self.targets)


@dataclass(frozen=True, slots=True, eq=False)
class MicroPlan:
    """Where the pairs of a micro-batch stand: rows of places for each side, seen end to end."""

    pairs: Pairs
    source_at: Numbers
    """The place of each pair's first source token, counted through all rows."""
    target_at: Numbers
    """The place of each pair's first target token, counted through all rows."""
    n_rows: int
    """Rows of either side; tiles, in the `packed` layout."""
    source_width: int
    """Places in a source row."""
    target_width: int
    """Places in a target row."""
    row_tiles: int
    """How many rows attention must take as one, so that no pair crosses from a row to the next."""

    @property
    def source_places(self) -> int:
        """Places for source tokens, taken or not."""
        return self.n_rows * self.source_width

    @property
    def target_places(self) -> int:
        """Places for target tokens, taken or not."""
        return self.n_rows * self.target_width


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan:
    """A global batch: what one update of the weights sees, whoever computes it."""

    micro: tuple[MicroPlan, ...]

    @property
    def n_pairs(self) -> int:
        """Pairs of all micro-batches."""
        return sum(len(micro.pairs) for micro in self.micro)

    @property
    def n_source_tokens(self) -> int:
        """Source tokens of all micro-batches."""
        return sum(int(micro.pairs.sources.sum()) for micro in self.micro)

    @property
    def n_target_tokens(self) -> int:
        """Target tokens of all micro-batches: what the sum of losses is divided by."""
        return sum(int(micro.pairs.targets.sum()) for micro in self.micro)

    @property
    def n_places(self) -> int:
        """Places for tokens of both sides, taken or not."""
        return sum(micro.source_places + micro.target_places for micro in self.micro)

    @property
    def hash(self) -> str:
        """Equal hashes mean the same pairs in the same order, micro-batch by micro-batch."""
        contents = hashlib.sha256()
        for micro in self.micro:
            contents.update(len(micro.pairs).to_bytes(8, "little"))
            contents.update(micro.pairs.numbers.astype("<i8").tobytes())
        return contents.hexdigest()


Shuffle = Callable[[int, str], Numbers]
"""A permutation of the numbers below n, for the purpose named."""
Planner = Callable[[Pairs, BatchConfig, Shuffle], list[BatchPlan]]
"""Plans the pairs of a window, which come in random order, into global batches."""
