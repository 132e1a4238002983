"""A fast update of the weights: the whole step is one CUDA graph.

The first step runs normally, so that kernels are compiled and Adam's moments are allocated. The
second step is captured. From then on, a step is a few small copies and one launch, and never waits
for the host.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from transept.engines.training.network import FusedNetwork, Tiles
from transept.engines.training.operations import gradient_of
from transept.model.packing import Tokens
from transept.runtime.seed import derive_seed
from transept.shapes import Float, Tensor
from transept.training.batches import MicroBatch
from transept.training.ranks import FlatGradients
from transept.training.update import StepValues, Update


class FusedUpdate(Update):
    """The same update with manually computed gradients.

    With several ranks, the graph ends with this rank's gradients. They are summed over all ranks in
    a few large chunks, and Adam runs outside the graph.
    """

    def __init__(self, *args: Any, tiles: Tiles, n_micro_batches: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        device, parameters = self.runtime.device, list(self.model.parameters())
        world = self.runtime.world
        self._flat = FlatGradients(parameters, world) if world.joined else None
        # Values that change from step to step are on the device, where a graph can read them.
        self._seeds = torch.zeros(n_micro_batches, 2, dtype=torch.int32, device=device)
        self._seed = torch.zeros(2, dtype=torch.int32, device=device)
        self._scale = torch.zeros((), device=device)
        self._lr = torch.zeros((), device=device)
        for group in self.adam.param_groups:
            group["lr"] = self._lr
        self._gradients = [gradient_of(parameter) for parameter in parameters]
        self.network = FusedNetwork(self.model, self.loss, tiles, self._seed, self.runtime.dtype)
        self._graph = _Graph()

    def __call__(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> StepValues:
        """Update the weights once, with the mean gradient over `n_target_tokens`."""
        self._set_inputs(step, micro_batches, n_target_tokens)
        self._lr.fill_(self.schedule(step))
        on_device = self._graph if self.runtime.device.type == "cuda" else _call
        if self._flat is None:
            values = on_device(self._step, micro_batches)
        else:
            losses = on_device(self._local_gradients, micro_batches)
            self._flat.total()
            values = (*losses, *self._apply_update())
        self._bump_versions()  # replaying a graph does not
        return StepValues(*values)

    def clear_gradients(self) -> None:
        """Set the gradients to zero in place: the network holds references to them."""
        torch._foreach_zero_(self._gradients)

    def accumulate(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> Float[Tensor, "2"]:
        """Accumulate the gradients of the micro-batches; return their summed losses."""
        self._set_inputs(step, micro_batches, n_target_tokens)
        return self._accumulate(micro_batches)

    def _set_inputs(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> None:
        """Copy the dropout seeds and the scale of the loss to the device."""
        n = len(micro_batches)
        words = [derive_seed(self.seed, step, batch.number) for batch in micro_batches]
        self._seeds[:n].copy_(torch.tensor(words, dtype=torch.int64).view(torch.int32).view(n, 2))
        self._scale.fill_(1 / n_target_tokens)

    def _step(self, micro_batches: Sequence[MicroBatch]) -> tuple[Tensor, ...]:
        """A whole step on the device, without other ranks."""
        return *self._local_gradients(micro_batches), *self._apply_update()

    def _local_gradients(self, micro_batches: Sequence[MicroBatch]) -> tuple[Tensor, ...]:
        self.clear_gradients()
        smoothed, nll = self._accumulate(micro_batches)
        return smoothed * self._scale, nll * self._scale

    def _apply_update(self) -> tuple[Tensor, ...]:
        norm = self._apply_gradients()
        return norm, self.suppressed.clone(), self.suppressed_in_a_row.clone()

    def _accumulate(self, micro_batches: Sequence[MicroBatch]) -> Float[Tensor, "2"]:
        sums = torch.zeros(2, device=self.runtime.device)
        for batch, seed in zip(micro_batches, self._seeds, strict=False):
            self._seed.copy_(seed)
            sums += torch.stack(self.network(batch.source, batch.target, self._scale))
        return sums

    def _replicate(self) -> nn.Module:
        """The objective itself: DDP relies on autograd, which is not used here."""
        return self.objective


Work = Callable[[Sequence[MicroBatch]], tuple[Tensor, ...]]
"""Computes values from micro-batches on the device."""


def _call(work: Work, micro_batches: Sequence[MicroBatch]) -> tuple[Tensor, ...]:
    return work(micro_batches)


class _Graph:
    """Captures its work in a CUDA graph at the second call, and replays it afterwards."""

    def __init__(self) -> None:
        self._graph: torch.cuda.CUDAGraph | None = None
        self._warm = False
        self._micro_batches: list[MicroBatch] = []
        self._values: tuple[Tensor, ...] | None = None

    def __call__(self, work: Work, micro_batches: Sequence[MicroBatch]) -> tuple[Tensor, ...]:
        if not self._warm or not micro_batches:
            self._warm = True
            return work(micro_batches)
        if self._graph is None:
            self._capture(work, micro_batches)
        ours, theirs = _tensors(self._micro_batches), _tensors(micro_batches)
        if [len(x) for x in ours] != [len(x) for x in theirs]:
            return work(micro_batches)
        torch._foreach_copy_(ours, theirs)
        assert self._graph is not None
        assert self._values is not None
        self._graph.replay()
        return self._values

    def _capture(self, work: Work, micro_batches: Sequence[MicroBatch]) -> None:
        # Otherwise the memory of the first step would stay reserved in addition to the graph's.
        torch.cuda.empty_cache()
        self._micro_batches = [_clone(batch) for batch in micro_batches]
        self._graph = torch.cuda.CUDAGraph()
        # Restrict only this thread: the loader's thread continues to pin memory.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._values = work(self._micro_batches)


def _clone(batch: MicroBatch) -> MicroBatch:
    """A copy in separate memory, into which other batches can be copied."""
    return MicroBatch(_clone_tokens(batch.source), _clone_tokens(batch.target))


def _clone_tokens(tokens: Tokens) -> Tokens:
    layout = dataclasses.replace(
        tokens.layout,
        positions=tokens.layout.positions.clone(),
        segments=tokens.layout.segments.clone(),
    )
    return Tokens(tokens.ids.clone(), layout)


def _tensors(micro_batches: Sequence[MicroBatch]) -> list[Tensor]:
    """All tensors that the fused network reads, flattened: the shape of rows may differ."""
    return [
        part.view(-1)
        for batch in micro_batches
        for tokens in (batch.source, batch.target)
        for part in (tokens.ids, tokens.layout.positions, tokens.layout.segments)
    ]
