"""A run's directory: what a training leaves there, and how another takes it up."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from transept import config
from transept.assembly.corpora import Corpora
from transept.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    STATE,
    TRAINING,
    WEIGHTS,
    Bundle,
    Checkpoints,
    load_weights,
    weights_of,
    write_directory,
)
from transept.errors import CheckpointError, ConfigError, VocabularyError
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.runtime.storage import flush, make_directory, write_file
from transept.text.symbols import load_vocabulary
from transept.training.progress import Progress
from transept.training.update import Update, restore_training_tensors, training_tensors
from transept.version import __version__

METRICS = "metrics.jsonl"


@dataclass(frozen=True, slots=True)
class Run:
    """The directory of one training run: its config, its log and its checkpoints."""

    directory: Path
    experiment: Experiment

    @property
    def checkpoints(self) -> Checkpoints:
        """Where the run can be taken up again."""
        return Checkpoints(self.directory / CHECKPOINTS, self.experiment.checkpoint.keep)

    def check_config(self, allow_change: bool) -> None:
        """Refuse to mix two experiments in one directory, unless told to."""
        path = self.directory / CONFIG
        if path.exists():
            before = config.load(Experiment, path)
            changes = config.differences(before, self.experiment)
            if changes and not allow_change:
                listed = "\n  ".join(changes)
                raise ConfigError(
                    f"{self.directory}: this run began with another config:\n  {listed}\n"
                    "Choose another --output, or go on with --allow-change"
                )
        try:
            make_directory(self.directory)
            write_file(path, config.dump(self.experiment).encode())
        except OSError as error:
            raise CheckpointError(
                f"{self.directory}: the run cannot be written there ({error.strerror}); "
                "make room or choose another --output"
            ) from error

    def restore(
        self, update: Update, init: Path | None, corpora: Corpora
    ) -> tuple[Progress, list[str]]:
        """Put the newest whole checkpoint into `update`; with it come things worth saying."""
        with collected_warnings() as notes:
            newest = self.checkpoints.newest()
        if newest is None:
            self._refuse_to_lose(notes)
            if init is not None:
                _initialise_from(init, update, corpora)
            return _fresh_progress(update.runtime), notes
        load_weights(update.model, newest.weights(), newest.directory)
        restore_training_tensors(update, newest.training())
        progress = Progress.from_json(newest.state())
        update.suppressed.fill_(progress.suppressed)
        self.checkpoints.discard_after(progress.step)
        here = _fresh_progress(update.runtime)
        for name in ("threads", "device", "torch"):
            before, now = getattr(progress, name), getattr(here, name)
            if before != now:
                notes.append(
                    f"{name} was {before} and is {now}: the run goes on, "
                    "but not bit for bit as it would have"
                )
                setattr(progress, name, now)
        return progress, notes

    def save(self, update: Update, progress: Progress, corpora: Corpora) -> None:
        """Write a checkpoint, then remove those that are no longer wanted."""
        with update.averaged():
            weights = {name: weight.clone() for name, weight in weights_of(update.model).items()}
        progress.suppressed = int(update.suppressed)
        self._flush_log()
        write_directory(
            self.checkpoints.path(progress.step),
            tensors={WEIGHTS: weights, TRAINING: training_tensors(update)},
            texts={
                CONFIG: config.dump(self.experiment),
                STATE: json.dumps(progress.as_json(), indent=2),
            },
            folders=corpora.tokenizers,
            about=_about(self.experiment) | {"step": progress.step},
        )
        self.checkpoints.prune(progress.best_step)

    def _flush_log(self) -> None:
        """Where there is a checkpoint, there is also the log of what led to it."""
        path = self.directory / METRICS
        try:
            flush(path)
        except OSError as error:
            raise CheckpointError(
                f"{path}: cannot be written ({error.strerror}); see to the disk, and start again"
            ) from error

    def _refuse_to_lose(self, damages: list[str]) -> None:
        """A run that has checkpoints is not begun anew over them, even if none can be used."""
        steps = self.checkpoints.steps()
        if steps:
            listed = "\n  ".join(damages)
            raise CheckpointError(
                f"{self.directory}: none of its {len(steps)} checkpoints can be used:\n  {listed}\n"
                "Bring one back from a copy; or, to begin anew, choose another --output or remove "
                f"{self.checkpoints.directory}"
            )


def _fresh_progress(runtime: Runtime) -> Progress:
    device = runtime.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Progress(threads=torch.get_num_threads(), device=name, torch=torch.__version__)


def _initialise_from(init: Path, update: Update, corpora: Corpora) -> None:
    """Start from a bundle's weights: it must read the same vocabulary."""
    bundle = Bundle.open(init)
    for name, ours in corpora.tokenizers.items():
        theirs = bundle.directory / name
        if not theirs.exists() or not _same_vocabulary(theirs, ours):
            raise VocabularyError(
                f"{init}: its {name} is not the corpus's: prepare the corpus with "
                f"--tokenizer {init / name}"
            )
    load_weights(update.model, bundle.weights(), init)


def _same_vocabulary(one: Path, other: Path) -> bool:
    return load_vocabulary(one).sha256 == load_vocabulary(other).sha256


def _about(experiment: Experiment) -> dict[str, Any]:
    return {
        "transept": __version__,
        "torch": torch.__version__,
        "corpora": [str(entry.path) for entry in experiment.data.train],
    }


class collected_warnings(logging.Handler):  # noqa: N801  (used as a context manager)
    """The warnings of `transept.checkpoint`, as a list."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take note of one."""
        self.messages.append(record.getMessage())

    def __enter__(self) -> list[str]:
        logging.getLogger("transept.checkpoint").addHandler(self)
        return self.messages

    def __exit__(self, *error: object) -> None:
        logging.getLogger("transept.checkpoint").removeHandler(self)
