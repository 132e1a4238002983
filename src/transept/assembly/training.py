"""Builds everything an experiment needs and trains it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from transept.assembly.corpora import Corpora, rehearse_largest, training_data, validation
from transept.assembly.quality import DevelopmentSentences, quality_check
from transept.assembly.run import Run
from transept.data.batching.feed import check_shares
from transept.errors import keys_below
from transept.experiment import Experiment
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.runtime.determinism import order_of
from transept.runtime.device import Runtime
from transept.runtime.distributed import ALONE, World
from transept.runtime.interrupt import stop_requests
from transept.runtime.lock import RESTART, held
from transept.runtime.seed import seed_torch
from transept.training.loss import Loss
from transept.training.observers import METRICS, MetricsLog, Observer, TensorBoard
from transept.training.state import Progress
from transept.training.trainer import Outcome, Trainer
from transept.training.update import MovingAverage, Schedule, Update, make_adam


def train(
    experiment: Experiment,
    directory: Path,
    *,
    init: Path | None = None,
    minutes: float | None = None,
    allow_change: bool = False,
    tensorboard: bool = False,
    observers: Sequence[Observer] = (),
    world: World = ALONE,
) -> Outcome:
    """Train an experiment in a run directory, resuming from its newest checkpoint if it has one.

    With several ranks, rank 0 handles the directory and the observers.
    """
    check_shares(experiment.batch, world.size)
    # One rank per machine verifies the files for all of them.
    corpora = Corpora.open(experiment, verify=world.local_rank == 0)
    run = Run(directory, corpora.fit(experiment))
    sentences = DevelopmentSentences.of(corpora.dev, experiment.validation)
    settings = experiment.training
    # Started twice by hand, the second run fails immediately. Under torchrun, the previous
    # process may still be shutting down.
    patience = RESTART if world.joined else 0.0
    waiting = held(directory, world, patience, lambda text: _notify(observers, _warning(0, text)))
    with order_of(settings.sums), waiting as notes:
        world.from_leader(lambda: run.check_config(allow_change))
        with keys_below("training"):
            runtime = Runtime.choose(settings.device, settings.precision, world)
        update = build_update(run.experiment, runtime)
        world.pulse.at("starting")
        progress, found = run.restore(update, init, corpora, allow_change)
        notes += [*found, *_startup_warnings(run.experiment, corpora, runtime)]
        own: list[Observer] = []
        if world.leads:
            own = [MetricsLog(directory / METRICS, resume_from=progress.step)]
            own += [TensorBoard(directory / "tensorboard")] if tensorboard else []
        watchers = [*own, *observers] if world.leads else []
        try:
            for text in notes:
                _notify(watchers, _warning(progress.step, text))
            _notify(watchers, _start_line(run, update, corpora, progress))
            world.pulse.at("starting", progress.step)
            rehearse_largest(update, run.experiment)
            world.from_leader(run.write_config)
            trainer = _trainer(run, update, corpora, sentences, watchers)
            with stop_requests("ignore" if world.joined else "obey") as stop:
                return trainer.run(progress, stop, minutes)
        finally:
            for observer in own:
                observer.close()


def _trainer(
    run: Run,
    update: Update,
    corpora: Corpora,
    sentences: DevelopmentSentences | None,
    observers: Sequence[Observer],
) -> Trainer:
    experiment, runtime = run.experiment, update.runtime
    return Trainer(
        update=update,
        data=lambda at: training_data(experiment, corpora, runtime, at),
        save=lambda progress: run.save(update, progress, corpora),
        validate=validation(experiment, corpora, update),
        measure_quality=quality_check(sentences, update),
        observers=observers,
        training=experiment.training,
        validation=experiment.validation,
        checkpoint=experiment.checkpoint,
        peak_flops=runtime.matrix_peak() if runtime.world.leads else 1.0,
    )


def _startup_warnings(experiment: Experiment, corpora: Corpora, runtime: Runtime) -> Iterator[str]:
    """Warnings worth reading before a long run."""
    yield from fused_warnings(experiment, runtime)
    n, ranks = experiment.batch.micro_batches, runtime.world.size
    if n % ranks:
        yield (
            f"batch.micro_batches = {n} cannot be divided evenly among {ranks} ranks: some ranks "
            "wait for others. The result is the same"
        )
    train, limit = corpora.train, experiment.batch.max_length
    left_out = int(((train.source_lengths > limit) | (train.target_lengths > limit)).sum())
    if left_out:
        yield (
            f"{left_out:,} of {len(train):,} pairs are skipped: a side has more tokens than "
            f"batch.max_length = {limit}"
        )


def _start_line(run: Run, update: Update, corpora: Corpora, progress: Progress) -> dict[str, Any]:
    runtime = update.runtime
    size = runtime.world.size
    ranks = f", {size} rank{'s' if size > 1 else ''}" if runtime.world.joined else ""
    where = f"{progress.device}, {runtime.precision}{ranks}"
    begin = f"resuming from step {progress.step:,}" if progress.step else "starting"
    n_parameters = update.model.n_parameters()
    return {
        "kind": "start",
        "step": progress.step,
        "device": progress.device,
        "precision": runtime.precision,
        "ranks": runtime.world.size,
        "parameters": n_parameters,
        "pairs": len(corpora.train),
        "state": run.state_hash(progress.step) if runtime.world.leads else None,
        "text": f"{run.directory}: {begin}; {n_parameters:,} parameters, "
        f"{len(corpora.train):,} pairs, {where}",
    }


def _warning(step: int, text: str) -> dict[str, Any]:
    return {"kind": "warning", "step": step, "text": text}


def _notify(observers: Sequence[Observer], line: dict[str, Any]) -> None:
    for observer in observers:
        observer.observe(line)


# --- model, optimizer and loss -----------------------------------------------------------------


def build_update(experiment: Experiment, runtime: Runtime) -> Update:
    """Build model, optimizer and loss, fused if the device and the architecture allow it."""
    seed_torch(experiment.training.seed, "weights")
    model = Transformer(experiment.model).to(runtime.device)
    decay = experiment.training.ema_decay
    shards = runtime.world if experiment.distributed.optimizer == "sharded" else ALONE
    fused = _wants_fused(experiment, runtime) and not fused_obstacles(experiment, runtime)
    kind = engines().training_update(experiment.batch) if fused else Update
    update = kind(
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
    plain_on_gpu = runtime.device.type == "cuda" and not fused
    if wanted == "always" or (wanted == "auto" and plain_on_gpu):
        update.objective.states = torch.compile(update.objective.states)
    return update


def fused_warnings(experiment: Experiment, runtime: Runtime) -> list[str]:
    """Return a warning if the fused training step is requested but cannot be used."""
    reasons = fused_obstacles(experiment, runtime) if _wants_fused(experiment, runtime) else []
    if not reasons:
        return []
    return [
        f"the fused kernels cannot be used ({', '.join(reasons)}); falling back to PyTorch, "
        "which is about half as fast"
    ]


def fused_obstacles(experiment: Experiment, runtime: Runtime) -> list[str]:
    """Return the reasons that rule out the fused training step. The paper's model has none."""
    reasons = engines().training_obstacles(experiment.model, experiment.batch)
    if runtime.precision != "bf16":
        reasons.append(f"training.precision = {runtime.precision!r}")
    return reasons


def _wants_fused(experiment: Experiment, runtime: Runtime) -> bool:
    return runtime.device.type == "cuda" and experiment.training.kernels == "auto"
