"""One update of the weights: gradients of a global batch, then Adam (section 5.3)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from transept.errors import ConfigError, Problem
from transept.model.packing import Tokens
from transept.model.transformer import Transformer
from transept.runtime.device import Runtime
from transept.runtime.distributed import ALONE, World
from transept.runtime.products import products_in
from transept.runtime.seed import seed_torch
from transept.shapes import Float, Tensor
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss, LossSums
from transept.training.ranks import own_part, replicate, shard


@dataclass(frozen=True, slots=True)
class Schedule:
    """lrate = d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5), equation (3)."""

    d_model: int
    warmup_steps: int = 4000
    factor: float = 1.0

    def __call__(self, step: int) -> float:
        """The learning rate of a step. Steps count from 1."""
        rate: float = self.d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)
        return self.factor * rate


class StepValues(NamedTuple):
    """Values of a step, still on the device: reading them would make the host wait."""

    smoothed: Float[Tensor, ""]
    """The loss of this rank's micro-batches; the sum over all ranks is the loss of the step."""
    nll: Float[Tensor, ""]
    """The same, without label smoothing."""
    gradient_norm: Float[Tensor, ""]
    suppressed: Float[Tensor, ""]
    suppressed_in_a_row: Float[Tensor, ""]


States = Callable[[Tokens, Tokens], Float[Tensor, "Nt D"]]


def make_states(model: Transformer) -> States:
    """The network up to the projection, as a single function that can be compiled."""

    def states(source: Tokens, target: Tokens) -> Tensor:
        return model.decoder_states(target, model.encode(source))

    return states


class Objective(nn.Module):
    """The summed loss of a micro-batch, as a module that DDP can wrap."""

    def __init__(self, model: Transformer, loss: Loss, runtime: Runtime) -> None:
        super().__init__()
        self.model, self.loss, self.runtime = model, loss, runtime
        self.states: States = make_states(model)
        """May be replaced by a compiled version."""

    def forward(self, batch: MicroBatch | None) -> LossSums:
        """The sums of a batch. Without one, zero with zero gradients: other ranks need them."""
        if batch is None:
            zero = 0.0 * torch.stack([p.sum() for p in self.model.parameters()]).sum()
            return LossSums(zero, zero.detach())
        with products_in(self.runtime.precision, self.runtime.device):
            states = self.states(batch.source, batch.target)
            return self.loss(states, self.model.projection, batch.target.ids)


def make_adam(
    model: nn.Module, config: AdamConfig, sharded_over: World = ALONE
) -> torch.optim.Optimizer:
    """Adam with the given constants. `Update` sets its learning rate at every step."""
    settings: dict[str, Any] = {
        "betas": (config.beta1, config.beta2),
        "eps": config.epsilon,
        "fused": True,
        "capturable": next(model.parameters()).is_cuda,
    }
    if sharded_over.size > 1:
        return shard(list(model.parameters()), **settings)
    return torch.optim.Adam(model.parameters(), **settings)


class MovingAverage:
    """An exponential moving average of the weights, used as the model. Not part of the paper."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def begin(self, model: nn.Module) -> None:
        """Reset the average to the network's current weights."""
        for name, parameter in model.named_parameters():
            self.weights[name].copy_(parameter)

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        """Update the average with the network's weights."""
        ours = list(self.weights.values())
        torch._foreach_lerp_(ours, [p.detach() for p in model.parameters()], 1 - self.decay)

    @torch.no_grad()
    def exchange(self, model: nn.Module) -> None:
        """Swap the average and the network's weights."""
        for name, parameter in model.named_parameters():
            weight = parameter.detach().clone()
            parameter.copy_(self.weights[name])
            self.weights[name].copy_(weight)


class Update:
    """One training step, independent of files and time.

    The loss of each micro-batch is a sum, divided by the number of target tokens in the *global*
    batch. So micro-batches of different sizes are weighted correctly. Dropout is seeded with
    (seed, step, micro-batch). With several ranks, each computes some micro-batches, and the
    gradients are summed over all ranks first. So clipping, Adam and the moving average are the same
    on each rank.
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
        self._no_sync = getattr(self.replica, "no_sync", nullcontext)
        """A context in which gradients are not summed over ranks."""
        self._own_adam: Any = own_part(adam)
        self.suppressed = torch.zeros((), device=runtime.device)
        self.suppressed_in_a_row = torch.zeros((), device=runtime.device)

    def __call__(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> StepValues:
        """Update the weights once, with the mean gradient over `n_target_tokens`."""
        self.model.train()
        self.clear_gradients()
        # Gradients are summed over ranks during the backward pass of the last micro-batch.
        early, last = micro_batches[:-1], micro_batches[-1] if micro_batches else None
        sums = self.accumulate(step, early, n_target_tokens)
        sums += self._backward(step, last, n_target_tokens)
        for group in self.adam.param_groups:
            group["lr"] = self.schedule(step)
        norm = self._apply_gradients()
        smoothed, nll = sums / n_target_tokens
        return StepValues(
            smoothed,
            nll,
            norm,
            self.suppressed.clone(),
            self.suppressed_in_a_row.clone(),
        )

    def clear_gradients(self) -> None:
        """Clear the gradients of the previous step."""
        self.adam.zero_grad(set_to_none=True)

    def accumulate(
        self, step: int, micro_batches: Sequence[MicroBatch], n_target_tokens: int
    ) -> Float[Tensor, "2"]:
        """Accumulate the gradients of micro-batches on this rank; return their summed losses."""
        sums = torch.zeros(2, device=self.runtime.device)
        with self._no_sync():
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
        """The objective; with several ranks, wrapped so that gradients are summed over them."""
        return replicate(self.objective, self.runtime.world)

    def _apply_gradients(self) -> Tensor:
        """Clip the gradients and apply Adam, unless a gradient is not finite."""
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        norm = get_total_norm([p.grad for p in parameters if p.grad is not None])
        if self.clip_norm is not None:
            clip_grads_with_norm_(parameters, self.clip_norm, norm)
        # If `found_inf` is 1, the fused Adam skips the step on the device: weights, moments and
        # step count do not change, and the host does not have to wait.
        bad = (~norm.isfinite()).float()
        self._own_adam.found_inf = bad
        self.suppressed += bad
        self.suppressed_in_a_row.add_(1).mul_(bad)
        self.adam.step()
        self._bump_versions()
        if self.ema is not None:
            self.ema.follow(self.model)
        return norm

    def _bump_versions(self) -> None:
        """Bump the weights' version counters, on which caches rely. The fused Adam does not."""
        torch.autograd.graph.increment_version(list(self.model.parameters()))

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """A context in which the network holds the moving average, if there is one."""
        if self.ema is None:
            yield
            return
        self.ema.exchange(self.model)
        try:
            yield
        finally:
            self.ema.exchange(self.model)


def rehearse(
    update: Update, batch: MicroBatch, smaller: Callable[[int], MicroBatch], divisors: Sequence[int]
) -> None:
    """Check that the largest batch fits into memory, without changing any state.

    Runs forward and backward pass with Adam's moments allocated. If memory is too small, training
    fails immediately and not after hours.

    Args:
        update: The update to check.
        batch: A batch of the maximum size.
        smaller: Returns a fraction of that batch: `smaller(4)` is a quarter.
        divisors: The fractions to try if it does not fit, to suggest one that does.
    """
    if _fits_all(update, batch):
        return
    fitting = next((n for n in divisors if _fits_all(update, smaller(n))), None)
    if fitting is None:
        cure = "not even the smallest one fits: use a smaller model"
    else:
        cure = f"1/{fitting} of it fits: make batch.micro_batches {fitting} times as large"
    tokens = len(batch.target.ids)
    problem = f"a micro-batch of {tokens:,} target positions does not fit into memory; {cure}"
    raise ConfigError([Problem("batch.micro_batches", problem)])


def without_moments(adam: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    """This rank's parameters whose moments are not yet allocated."""
    own = own_part(adam)
    return [p for group in own.param_groups for p in group["params"] if p not in own.state]


def _fits_all(update: Update, batch: MicroBatch) -> bool:
    """Whether the batch fits on every rank."""
    [misfit] = update.runtime.world.agree([not _fits(update, batch)])
    return not misfit


def _fits(update: Update, batch: MicroBatch) -> bool:
    # Adam allocates its two moments at the first step: reserve their memory if they are missing.
    moments = [torch.empty_like(p) for p in without_moments(update.adam) for _ in range(2)]
    try:
        update.model.train()
        update.accumulate(0, [batch], n_target_tokens=max(1, len(batch.target.ids)))
        update.runtime.synchronize()
    except (MemoryError, torch.OutOfMemoryError):
        return False
    except RuntimeError as error:
        # On a CPU, torch raises a plain RuntimeError.
        if "not enough memory" not in str(error) and "can't allocate memory" not in str(error):
            raise
        return False
    finally:
        update.clear_gradients()
        del moments
        if update.runtime.device.type == "cuda":
            torch.cuda.empty_cache()
    return True
