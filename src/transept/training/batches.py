"""What a step learns from: the loader's blocks, as the network reads them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.collation import Header
from transept.model.config import ModelConfig
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.shapes import Int, Tensor
from transept.training.flops import training_flops


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What is computed at once of a global batch, as the network reads it."""

    source: Tokens
    target: Tokens
    number: int = 0
    """Which of the global batch's it is: dropout follows from it, whoever computes it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step learns from: in figures all of it, in micro-batches this rank's share."""

    header: Header
    """The figures of the global batch, and where the data continues after it."""
    micro_batches: list[MicroBatch]
    flops: float
    """Arithmetic of this rank's share on real tokens."""


def to_batch(
    header: Header, block: Int[Tensor, " _"], config: ModelConfig, runtime: Runtime
) -> Batch:
    """This rank's share of a batch, on its device."""
    return Batch(
        header,
        to_micro_batches(header, block, runtime),
        flops=sum(
            training_flops(config, _lengths(source), _lengths(target))
            for _, source, target in header.cut(block)
        ),
    )


def to_micro_batches(
    header: Header, block: Int[Tensor, " _"], runtime: Runtime
) -> list[MicroBatch]:
    """Move a block to the device and cut it; micro-batches without a single pair are left out."""
    rank, n_ranks = runtime.world.rank, runtime.world.size
    # The host does not wait for the copy of a pinned block.
    moved = block.to(runtime.device, non_blocking=True)
    return [
        MicroBatch(
            _tokens(source, shape.row_tiles, runtime),
            _tokens(target, shape.row_tiles, runtime),
            number=rank + index * n_ranks,
        )
        for index, (shape, source, target) in enumerate(header.cut(moved))
        if shape.n_pairs > 0
    ]


def _tokens(side: Int[Tensor, "3 B L"], row_tiles: int, runtime: Runtime) -> Tokens:
    """A side as tokens. On a CPU, where shapes are free, without its padding."""
    ids, segments, positions = side
    tokens = Tokens.tiled(ids, segments, positions, row_tiles=row_tiles)
    return tokens.without_padding() if runtime.device.type == "cpu" else tokens


def _lengths(side: Int[Tensor, "3 B L"]) -> NDArray[np.int64]:
    """Tokens of each pair's sentence; segment 0 is padding."""
    _, segments, _ = side
    return np.bincount(segments.flatten().numpy())[1:]
