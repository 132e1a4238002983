"""From a plan to ids: the pairs of a batch are read and laid out, without a look at each token.

What is made here crosses from a worker to the training process as one block of numbers, so this
module and those below it import numpy and no torch: a worker starts in a fraction of a second.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.mixture import Mixture, Numbers
from transept.data.batching.plan import Position
from transept.data.batching.window import BatchPlan, MicroPlan

FIELDS = ("ids", "segments", "positions")
"""What is said about each place of a side, in the order in which a block holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A micro-batch in figures: all that is needed to cut it out of a block."""

    n_rows: int
    source_width: int
    target_width: int
    row_tiles: int
    n_pairs: int
    n_source_tokens: int
    n_target_tokens: int
    max_length: int

    @property
    def size(self) -> int:
        """Numbers that it takes of a block."""
        return len(FIELDS) * self.n_rows * (self.source_width + self.target_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What goes with a block: the global batch in figures, the share of one rank in shapes."""

    next: Position
    hash: str
    n_pairs: int
    n_source_tokens: int
    n_target_tokens: int
    n_places: int
    shapes: tuple[Shape, ...]

    @property
    def size(self) -> int:
        """Numbers of the block."""
        return sum(shape.size for shape in self.shapes)


def collate(
    following: Position, batch: BatchPlan, share: Sequence[MicroPlan], mixture: Mixture
) -> tuple[Header, NDArray[np.int32]]:
    """Read a share of a batch; `following` is the position after it.

    The block holds, micro-batch after micro-batch, the fields of its source side and then those
    of its target side. Places without a token hold 0 in each: the pad id, and segment 0.
    """
    header = Header(
        next=following,
        hash=batch.hash,
        n_pairs=batch.n_pairs,
        n_source_tokens=batch.n_source_tokens,
        n_target_tokens=batch.n_target_tokens,
        n_places=batch.n_places,
        shapes=tuple(map(_shape, share)),
    )
    block = np.zeros(header.size, dtype=np.int32)
    start = 0
    for micro in share:
        numbers, sources, targets = micro.pairs.numbers, micro.pairs.sources, micro.pairs.targets
        for ids, at, lengths, places in (
            (mixture.read("source", numbers), micro.source_at, sources, micro.source_places),
            (mixture.read("target", numbers), micro.target_at, targets, micro.target_places),
        ):
            stop = start + len(FIELDS) * places
            _lay_out(ids, at, lengths, block[start:stop].reshape(len(FIELDS), places))
            start = stop
    return header, block


def _lay_out(
    ids: NDArray[np.int32], at: Numbers, lengths: NDArray[np.int32], fields: NDArray[np.int32]
) -> None:
    """Write each sentence's ids, number and positions where it stands; elsewhere stays 0."""
    begins = np.cumsum(lengths, dtype=np.int64) - lengths
    positions = np.arange(len(ids)) - np.repeat(begins, lengths)
    places = np.repeat(at, lengths) + positions
    fields[0, places] = ids
    fields[1, places] = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    fields[2, places] = positions


def _shape(micro: MicroPlan) -> Shape:
    return Shape(
        n_rows=micro.n_rows,
        source_width=micro.source_width,
        target_width=micro.target_width,
        row_tiles=micro.row_tiles,
        n_pairs=len(micro.pairs),
        n_source_tokens=int(micro.pairs.sources.sum()),
        n_target_tokens=int(micro.pairs.targets.sum()),
        max_length=int(micro.pairs.longest.max(initial=0)),
    )
