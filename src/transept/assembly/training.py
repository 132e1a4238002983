"""One experiment, trained: everything built by plain calls, then run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transept.assembly.corpora import Corpora
from transept.assembly.feeding import rehearse_largest, training_data, validation
from transept.assembly.run import METRICS, Run
from transept.assembly.update import build_update, slowness
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.runtime.interrupt import stop_requests
from transept.training.observers import MetricsLog, Observer, TensorBoard
from transept.training.progress import Progress
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
) -> Outcome:
    """Train an experiment in a run's directory, from its newest checkpoint if it has one."""
    corpora = Corpora.open(experiment)
    experiment = corpora.fit(experiment)
    run = Run(directory, experiment)
    run.check_config(allow_change)
    runtime = Runtime.choose(experiment.training.device, experiment.training.precision)
    update = build_update(experiment, runtime)
    progress, notes = run.restore(update, init, corpora)
    notes += slowness(experiment, runtime)
    log = MetricsLog(directory / METRICS, resume_from=progress.step)
    boards = [TensorBoard(directory / "tensorboard")] if tensorboard else []
    own: list[Observer] = [log, *boards]
    watchers = [*own, *observers]
    try:
        for text in notes:
            _tell(watchers, {"kind": "warning", "step": progress.step, "text": text})
        _tell(watchers, _start_line(run, update, corpora, progress))
        rehearse_largest(update, experiment)
        trainer = Trainer(
            update=update,
            data=lambda at: training_data(experiment, corpora, runtime, at),
            save=lambda progress: run.save(update, progress, corpora),
            validate=validation(experiment, corpora, update),
            observers=watchers,
            training=experiment.training,
            validation=experiment.validation,
            checkpoint=experiment.checkpoint,
            peak_flops=runtime.matrix_peak(),
        )
        with stop_requests() as stop:
            return trainer.run(progress, stop, minutes)
    finally:
        for observer in own:
            observer.close()


def _start_line(run: Run, update: Update, corpora: Corpora, progress: Progress) -> dict[str, Any]:
    runtime = update.runtime
    where = f"{progress.device}, {runtime.precision}"
    begin = f"going on from step {progress.step:,}" if progress.step else "starting"
    n_parameters = update.model.n_parameters()
    return {
        "kind": "start",
        "step": progress.step,
        "device": progress.device,
        "precision": runtime.precision,
        "parameters": n_parameters,
        "pairs": len(corpora.train),
        "text": f"{run.directory}: {begin}; {n_parameters:,} parameters, "
        f"{len(corpora.train):,} pairs, {where}",
    }


def _tell(observers: Sequence[Observer], line: dict[str, Any]) -> None:
    for observer in observers:
        observer.observe(line)
