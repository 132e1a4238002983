"""Batches as tensors: what the training loop is given."""

from dataclasses import dataclass

import torch

from transept.data.batching.collation import FIELDS, Header, Shape
from transept.shapes import Int, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The source or the target sentences of a micro-batch, in rows of places."""

    ids: Int[Tensor, "B L"]
    """Token ids; 0, the pad id, where there is no token."""
    segments: Int[Tensor, "B L"]
    """Number of the pair in the micro-batch, from 1; 0 where there is no token."""
    positions: Int[Tensor, "B L"]
    """Place of the token in its sentence, from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedMicroBatch:
    """What goes through the network at once. It may hold no pair, where data are few."""

    source: Side
    target: Side
    n_pairs: int
    n_source_tokens: int
    n_target_tokens: int
    row_tiles: int
    """How many rows attention must take as one, so that no pair crosses from a row to the next."""
    max_length: int
    """The longest sentence of either side."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadedBatch:
    """One rank's share of a global batch: what one update of the weights sees."""

    header: Header
    """The global batch in figures, and where to continue after it."""
    block: Int[Tensor, " _"]
    """All micro-batches in one piece, so that one copy moves the batch to a device."""
    micro_batches: tuple[LoadedMicroBatch, ...]
    """Views of the block."""

    @classmethod
    def of(cls, header: Header, block: Int[Tensor, " _"]) -> "LoadedBatch":
        """Cut the block into micro-batches."""
        pieces = block.split([shape.size for shape in header.shapes])
        micro_batches = tuple(map(_micro_batch, header.shapes, pieces))
        return cls(header, block, micro_batches)

    def to(self, device: torch.device | str) -> "LoadedBatch":
        """The same batch on a device; the host does not wait for the copy of a pinned one."""
        return LoadedBatch.of(self.header, self.block.to(device, non_blocking=True))


def _micro_batch(shape: Shape, piece: Tensor) -> LoadedMicroBatch:
    widths = (shape.source_width, shape.target_width)
    sides = piece.split([len(FIELDS) * shape.n_rows * width for width in widths])
    source, target = (
        Side(*side.view(len(FIELDS), shape.n_rows, width))
        for side, width in zip(sides, widths, strict=True)
    )
    return LoadedMicroBatch(
        source=source,
        target=target,
        n_pairs=shape.n_pairs,
        n_source_tokens=shape.n_source_tokens,
        n_target_tokens=shape.n_target_tokens,
        row_tiles=shape.row_tiles,
        max_length=shape.max_length,
    )
