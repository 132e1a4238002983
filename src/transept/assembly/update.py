"""An experiment's network, optimizer and loss, in the fastest form that knows them."""

from collections.abc import Callable

import torch

from transept.experiment import Experiment
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.runtime.device import Runtime
from transept.runtime.distributed import ALONE
from transept.runtime.seed import seed_torch
from transept.training.loss import Loss
from transept.training.update import MovingAverage, Schedule, Update, make_adam


def build_update(experiment: Experiment, runtime: Runtime) -> Update:
    """A fresh network, its optimizer and its loss: in the fast form where there is one for it."""
    seed_torch(experiment.training.seed, "weights")
    model = Transformer(experiment.model).to(runtime.device)
    decay = experiment.training.ema_decay
    shards = runtime.world if experiment.distributed.optimizer == "sharded" else ALONE
    update = _kind_of_update(experiment, runtime)(
        model,
        adam=make_adam(model, experiment.adam, sharded_over=shards),
        schedule=Schedule(
            experiment.model.d_model, experiment.schedule.warmup_steps, experiment.schedule.factor
        ),
        loss=Loss(
            experiment.loss.label_smoothing, experiment.model.pad_id, experiment.loss.smoothing
        ),
        runtime=runtime,
        seed=experiment.training.seed,
        clip_norm=experiment.training.clip_norm,
        ema=None if decay is None else MovingAverage(model, decay),
    )
    wanted = experiment.training.compile
    plain_on_gpu = runtime.device.type == "cuda" and type(update) is Update
    if wanted == "always" or (wanted == "auto" and plain_on_gpu):
        update.objective.states = torch.compile(update.objective.states, dynamic=False)
    return update


def _kind_of_update(experiment: Experiment, runtime: Runtime) -> Callable[..., Update]:
    """The fast form where the device and the network allow it."""
    if not _wants_kernels(experiment, runtime) or slow_because(experiment, runtime):
        return Update
    return engines().training_update(experiment.batch)


def slowness(experiment: Experiment, runtime: Runtime) -> list[str]:
    """A line for whoever expects the fast form and does not get it."""
    reasons = slow_because(experiment, runtime) if _wants_kernels(experiment, runtime) else []
    if not reasons:
        return []
    return [
        f"our own kernels cannot be used ({', '.join(reasons)}): PyTorch's are used instead, "
        "which is about half as fast"
    ]


def _wants_kernels(experiment: Experiment, runtime: Runtime) -> bool:
    return runtime.device.type == "cuda" and experiment.training.kernels == "auto"


def slow_because(experiment: Experiment, runtime: Runtime) -> list[str]:
    """What stands in the way of the fast training step; nothing, for the paper's network."""
    reasons = engines().training_obstacles(experiment.model, experiment.batch)
    if runtime.precision != "bf16":
        reasons.append(f"training.precision = {runtime.precision!r}")
    return reasons
