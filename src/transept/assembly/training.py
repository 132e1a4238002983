"""One experiment, trained: everything built by plain calls, then run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transept.assembly.corpora import Corpora
from transept.assembly.feeding import rehearse_largest, training_data, validation
from transept.assembly.run import METRICS, Run
from transept.assembly.update import build_update, slowness
from transept.data.batching.feed import check_shares
from transept.errors import keys_below
from transept.experiment import Experiment
from transept.runtime.determinism import order_of
from transept.runtime.device import Runtime
from transept.runtime.distributed import ALONE, World
from transept.runtime.interrupt import stop_requests
from transept.runtime.lock import RESTART, held
from transept.training.observers import MetricsLog, Observer, TensorBoard
from transept.training.state import Progress
from transept.training.trainer import Outcome, Trainer
from transept.training.update import Update


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
    """Train an experiment in a run's directory, from its newest checkpoint if it has one.

    Of several ranks, the first looks after the directory and the observers.
    """
    check_shares(experiment.batch, world.size)
    # One rank of a machine reads the files through for all of its ranks.
    corpora = Corpora.open(experiment, verify=world.local_rank == 0)
    run = Run(directory, corpora.fit(experiment))
    settings = experiment.training

    def say_waiting(text: str) -> None:
        _tell(observers, _warning(0, text))

    # Who starts a training by hand twice is told at once; torchrun may be ending our predecessor.
    patience = RESTART if world.joined else 0.0
    with order_of(settings.sums), held(directory, world, patience, say_waiting) as notes:
        world.from_leader(lambda: run.check_config(allow_change))
        with keys_below("training"):
            runtime = Runtime.choose(settings.device, settings.precision, world)
        update = build_update(run.experiment, runtime)
        world.pulse.at("starting")
        progress, found = run.restore(update, init, corpora, allow_change)
        notes += [*found, *_advice(run.experiment, corpora, runtime)]
        own = _records(directory, progress, tensorboard) if world.leads else []
        watchers = [*own, *observers] if world.leads else []
        try:
            for text in notes:
                _tell(watchers, _warning(progress.step, text))
            _tell(watchers, _start_line(run, update, corpora, progress))
            world.pulse.at("starting", progress.step)
            rehearse_largest(update, run.experiment)
            world.from_leader(run.write_config)
            trainer = _trainer(run, update, corpora, watchers)
            with stop_requests("ignore" if world.joined else "obey") as stop:
                return trainer.run(progress, stop, minutes)
        finally:
            for observer in own:
                observer.close()


def _trainer(run: Run, update: Update, corpora: Corpora, observers: Sequence[Observer]) -> Trainer:
    experiment, runtime = run.experiment, update.runtime
    return Trainer(
        update=update,
        data=lambda at: training_data(experiment, corpora, runtime, at),
        save=lambda progress: run.save(update, progress, corpora),
        validate=validation(experiment, corpora, update),
        observers=observers,
        training=experiment.training,
        validation=experiment.validation,
        checkpoint=experiment.checkpoint,
        peak_flops=runtime.matrix_peak() if runtime.world.leads else 1.0,
    )


def _records(directory: Path, progress: Progress, tensorboard: bool) -> list[Observer]:
    log = MetricsLog(directory / METRICS, resume_from=progress.step)
    return [log, *([TensorBoard(directory / "tensorboard")] if tensorboard else [])]


def _advice(experiment: Experiment, corpora: Corpora, runtime: Runtime) -> list[str]:
    """What a person should know before so many hours are spent."""
    return [
        *slowness(experiment, runtime),
        *_waiting(experiment, runtime.world),
        *_left_out(experiment, corpora),
    ]


def _waiting(experiment: Experiment, world: World) -> list[str]:
    """A line for whoever lets some ranks wait for others in every step."""
    n = experiment.batch.micro_batches
    if n % world.size == 0:
        return []
    return [
        f"batch.micro_batches = {n} are shared out unevenly among {world.size} ranks: some wait "
        "for others. The result is the same"
    ]


def _left_out(experiment: Experiment, corpora: Corpora) -> list[str]:
    """A line for whoever has text that training never sees."""
    train, limit = corpora.train, experiment.batch.max_length
    n = int(((train.source_lengths > limit) | (train.target_lengths > limit)).sum())
    if n == 0:
        return []
    return [
        f"{n:,} of {len(train):,} pairs are left out: a side has more tokens than "
        f"batch.max_length = {limit}"
    ]


def _start_line(run: Run, update: Update, corpora: Corpora, progress: Progress) -> dict[str, Any]:
    runtime = update.runtime
    size = runtime.world.size
    ranks = f", {size} rank{'s' if size > 1 else ''}" if runtime.world.joined else ""
    where = f"{progress.device}, {runtime.precision}{ranks}"
    begin = f"going on from step {progress.step:,}" if progress.step else "starting"
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


def _tell(observers: Sequence[Observer], line: dict[str, Any]) -> None:
    for observer in observers:
        observer.observe(line)
