"""From the loader's batches to what the network reads."""

import torch

from transept.data.batching.batches import Batch as LoadedBatch
from transept.data.batching.batches import MicroBatch, Side
from transept.model.config import ModelConfig
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.flops import training_flops
from transept.training.trainer import GlobalBatch
from transept.training.update import Batch


def to_global_batch(loaded: LoadedBatch, config: ModelConfig, runtime: Runtime) -> GlobalBatch:
    """Move this rank's share to the device; micro-batches without a single pair are left out."""
    moved, world = loaded.to(runtime.device), runtime.world
    return GlobalBatch(
        batches=[
            to_batch(micro, runtime, number=world.rank + index * world.size)
            for index, micro in enumerate(moved.micro_batches)
            if micro.n_pairs > 0
        ],
        source_tokens=loaded.label.n_source_tokens,
        target_tokens=loaded.label.n_target_tokens,
        places=loaded.label.n_places,
        flops=sum(_flops(m, config) for m in loaded.micro_batches),
        after=loaded.label.next,
        hash=loaded.label.hash,
    )


def to_batch(micro: MicroBatch, runtime: Runtime, number: int = 0) -> Batch:
    """A micro-batch as tokens. On a CPU, where shapes are free, without its padding."""
    source, target = (
        Tokens.tiled(side.ids, side.segments, side.positions, row_tiles=micro.row_tiles)
        for side in (micro.source, micro.target)
    )
    if runtime.device.type == "cpu":
        return Batch(source.without_padding(), target.without_padding(), number)
    return Batch(source, target, number)


def _flops(micro: MicroBatch, config: ModelConfig) -> float:
    sources, targets = _lengths(micro.source), _lengths(micro.target)
    return training_flops(
        config,
        source_tokens=micro.n_source_tokens,
        target_tokens=micro.n_target_tokens,
        source_pairs=int((sources * sources).sum()),
        target_pairs=int((targets * (targets + 1) // 2).sum()),
        cross_pairs=int((sources * targets).sum()),
    )


def _lengths(side: Side) -> torch.Tensor:
    """Tokens of each pair's sentence; the padding's count is set to none."""
    lengths = torch.bincount(side.segments.flatten())
    lengths[0] = 0
    return lengths
