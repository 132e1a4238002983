"""One update of the weights: gradients of a global batch, then Adam (section 5.3)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from transept.model.packing import Tokens
from transept.model.transformer import Transformer
from transept.runtime.device import Runtime
from transept.runtime.distributed import ALONE, World
from transept.runtime.seed import seed_torch
from transept.shapes import Float, Tensor
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss, LossSums
from transept.training.moving_average import MovingAverage
from transept.training.replica import no_sync, replicate
from transept.training.schedule import Schedule
from transept.training.sharding import own_part, shard


class StepValues(NamedTuple):
    """What a step gave, still on the device: reading a number would make the host wait."""

    smoothed: Float[Tensor, ""]
    """Of this rank's micro-batches; the sum over all ranks is the loss."""
    nll: Float[Tensor, ""]
    """The same, without smoothing."""
    gradient_norm: Float[Tensor, ""]
    suppressed: Float[Tensor, ""]
    suppressed_in_a_row: Float[Tensor, ""]


States = Callable[[Tokens, Tokens], Float[Tensor, "Nt D"]]


def states_of(model: Transformer) -> States:
    """The network up to the projection, as one function that can be compiled."""

    def states(source: Tokens, target: Tokens) -> Tensor:
        return model.decoder_states(target, model.encode(source))

    return states


class Objective(nn.Module):
    """The sums of a micro-batch's loss as a module, so that DDP can stand around it."""

    def __init__(self, model: Transformer, loss: Loss, runtime: Runtime) -> None:
        super().__init__()
        self.model, self.loss, self.runtime = model, loss, runtime
        self.states: States = states_of(model)
        """May be replaced by a compiled version of itself."""

    def forward(self, batch: MicroBatch | None) -> LossSums:
        """The sums of a batch. Without one, zero with zero gradients: other ranks wait for them."""
        if batch is None:
            zero = 0.0 * torch.stack([p.sum() for p in self.model.parameters()]).sum()
            return LossSums(zero, zero.detach())
        with self.runtime.autocast():
            states = self.states(batch.source, batch.target)
            return self.loss(states, self.model.projection, batch.target.ids)


def make_adam(
    model: nn.Module, config: AdamConfig, sharded_over: World = ALONE
) -> torch.optim.Optimizer:
    """Adam with the paper's constants. Its learning rate is set at every step."""
    settings: dict[str, Any] = {
        "betas": (config.beta1, config.beta2),
        "eps": config.epsilon,
        "fused": True,
        "capturable": next(model.parameters()).is_cuda,
    }
    if sharded_over.size > 1:
        return shard(list(model.parameters()), **settings)
    return torch.optim.Adam(model.parameters(), **settings)


class Update:
    """Makes one step of training out of built objects; knows no files and no clock.

    The loss of each micro-batch is a sum, divided by the number of target tokens in the *global*
    batch: micro-batches of unequal fill weigh what they should. Dropout follows from (seed, step,
    micro-batch). Of several ranks each has some micro-batches; the gradients are summed over all
    ranks before anything is done with them, so that clipping, Adam and the moving average are the
    same on each.
    """

    def __init__(
        self,
        model: Transformer,
        *,
        adam: torch.optim.Optimizer,
        schedule: Schedule,
        loss: Loss,
        runtime: Runtime,
        seed: int,
        clip_norm: float | None = None,
        ema: MovingAverage | None = None,
    ) -> None:
        self.model = model
        self.adam = adam
        self.schedule = schedule
        self.loss = loss
        self.runtime = runtime
        self.seed = seed
        self.clip_norm = clip_norm
        self.ema = ema
        self.objective = Objective(model, loss, runtime)
        self.replica = self._replicate()
        self.suppressed = torch.zeros((), device=runtime.device)
        self.suppressed_in_a_row = torch.zeros((), device=runtime.device)

    def __call__(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> StepValues:
        """Update the weights once, with the mean gradient over `n_target_tokens`."""
        self.model.train()
        self.clear_gradients()
        # The last micro-batch's backward pass sends the sums around while it runs.
        early, last = micro_batches[:-1], micro_batches[-1] if micro_batches else None
        sums = self.accumulate(step, early, n_target_tokens)
        sums += self._backward(step, last, n_target_tokens)
        for group in self.adam.param_groups:
            group["lr"] = self.schedule(step)
        norm = self._move_weights()
        smoothed, nll = sums / n_target_tokens
        return StepValues(
            smoothed,
            nll,
            norm,
            self.suppressed.clone(),
            self.suppressed_in_a_row.clone(),
        )

    def clear_gradients(self) -> None:
        """Forget the gradients of the step before."""
        self.adam.zero_grad(set_to_none=True)

    def accumulate(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> Float[Tensor, "2"]:
        """Add up the gradients of micro-batches on this rank; give the sums of their losses."""
        sums = torch.zeros(2, device=self.runtime.device)
        with no_sync(self.replica):
            for batch in micro_batches:
                sums += self._backward(step, batch, n_target_tokens)
        return sums

    def _backward(
        self, step: int, batch: MicroBatch | None, n_target_tokens: int
    ) -> Float[Tensor, "2"]:
        if batch is not None:
            seed_torch(self.seed, step, batch.number)
        sums: LossSums = self.replica(batch)
        (sums.smoothed / n_target_tokens).backward()
        return torch.stack([sums.smoothed.detach(), sums.nll])

    def _replicate(self) -> nn.Module:
        """The objective; with other ranks, in a form that sums gradients over them."""
        return replicate(self.objective, self.runtime.world)

    def _move_weights(self) -> Tensor:
        """Clip, and let Adam move the weights unless a gradient is not a number."""
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
        if self.clip_norm is not None:
            clip_grads_with_norm_(parameters, self.clip_norm, norm)
        # The fused Adam skips a step whose `found_inf` is 1 on the device itself: weights,
        # moments and its step count stay as they are, and the host need not look.
        bad = (~norm.isfinite()).float()
        own_part(self.adam).found_inf = bad  # type: ignore[attr-defined]
        self.suppressed += bad
        self.suppressed_in_a_row.add_(1).mul_(bad)
        self.adam.step()
        self._weights_have_moved()
        if self.ema is not None:
            self.ema.follow(self.model)
        return norm

    def _weights_have_moved(self) -> None:
        """Say so, which the fused Adam does not: others keep what they computed from them."""
        torch.autograd.graph.increment_version(list(self.model.parameters()))

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Within it, the network holds the moving average of its weights, where one is kept."""
        if self.ema is None:
            yield
            return
        self.ema.exchange(self.model)
        try:
            yield
        finally:
            self.ema.exchange(self.model)
