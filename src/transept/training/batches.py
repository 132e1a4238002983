"""What a step learns from: the loader's batches, as the network reads them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.batches import LoadedBatch, LoadedMicroBatch, Side
from transept.data.batching.plan import Position
from transept.model.config import ModelConfig
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.flops import training_flops


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What is computed at once of a global batch, as the network reads it."""

    source: Tokens
    target: Tokens
    number: int = 0
    """Which of the global batch's it is: dropout follows from it, whoever computes it."""


@dataclass(frozen=True, slots=True)
class GlobalBatch:
    """What one step learns from: in figures all of it, in micro-batches this rank's share."""

    micro_batches: list[MicroBatch]
    source_tokens: int
    """Real source tokens, padding not counted."""
    target_tokens: int
    """Real target tokens: what the summed loss is divided by."""
    places: int
    """Places for tokens on both sides, padding counted."""
    flops: float
    """Arithmetic of this rank's share on real tokens."""
    after: Position
    """Where the data goes on."""
    hash: str
    """Equal hashes mean the same pairs, micro-batch by micro-batch."""


def to_global_batch(loaded: LoadedBatch, config: ModelConfig, runtime: Runtime) -> GlobalBatch:
    """Move this rank's share to the device; micro-batches without a single pair are left out."""
    moved, world = loaded.to(runtime.device), runtime.world
    return GlobalBatch(
        micro_batches=[
            to_micro_batch(micro, runtime, number=world.rank + index * world.size)
            for index, micro in enumerate(moved.micro_batches)
            if micro.n_pairs > 0
        ],
        source_tokens=loaded.header.n_source_tokens,
        target_tokens=loaded.header.n_target_tokens,
        places=loaded.header.n_places,
        flops=sum(
            training_flops(config, _lengths(micro.source), _lengths(micro.target))
            for micro in loaded.micro_batches
        ),
        after=loaded.header.next,
        hash=loaded.header.hash,
    )


def to_micro_batch(micro: LoadedMicroBatch, runtime: Runtime, number: int = 0) -> MicroBatch:
    """A micro-batch as tokens. On a CPU, where shapes are free, without its padding."""
    source, target = (
        Tokens.tiled(side.ids, side.segments, side.positions, row_tiles=micro.row_tiles)
        for side in (micro.source, micro.target)
    )
    if runtime.device.type == "cpu":
        return MicroBatch(source.without_padding(), target.without_padding(), number)
    return MicroBatch(source, target, number)


def _lengths(side: Side) -> NDArray[np.int64]:
    """Tokens of each pair's sentence; segment 0 is padding."""
    return np.bincount(side.segments.flatten().numpy())[1:]
