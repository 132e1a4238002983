"""The run directory: what training stores there, and how it resumes."""

import hashlib
import json
import logging.handlers
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from transept import config
from transept.assembly.corpora import Corpora
from transept.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    MANIFEST,
    STATE,
    TARGET_TOKENIZER,
    TOKENIZER,
    TRAINING,
    WEIGHTS,
    Bundle,
    Checkpoints,
    Tensors,
    load_weights,
    tensors_sha256,
    tokenizers_in,
    weights_of,
    write_directory,
)
from transept.data.config import BatchConfig
from transept.errors import Argument, CheckpointError, ConfigError, VocabularyError
from transept.experiment import EXECUTION_KEYS, Experiment
from transept.runtime.device import Runtime
from transept.runtime.storage import flush, make_directory, write_file
from transept.shelf import find_model
from transept.text.symbols import load_vocabulary
from transept.training.config import Metric
from transept.training.observers import METRICS
from transept.training.state import Progress, restore_training_tensors, training_tensors
from transept.training.update import Update
from transept.version import __version__
from transept.wording import counted

SAME_WEIGHTS = (
    "activation_dropout",
    "attention_dropout",
    "decoder_window",
    "dropout",
    "encoder_window",
    "initial_gain",
    "max_positions",
    "source_vocab_size",
    "vocab_size",
)
"""Model keys that may change when weights are reused. Either the weights keep their meaning, or
they do not fit and are rejected. Changing any other key could give matrices of the same shape
another meaning: weights trained with eight heads do not work with four."""


@dataclass(slots=True)
class Run:
    """The directory of one training run: its config, its log and its checkpoints."""

    directory: Path
    experiment: Experiment
    init: str | None = None
    """The model that the run started from, if any. Set by `restore`."""

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints that the run can resume from."""
        return Checkpoints(self.directory / CHECKPOINTS, self.experiment.checkpoint.keep)

    def state_hash(self, step: int) -> str | None:
        """The sha256 of all tensors that the run resumes from, or None for a new run."""
        path = self.checkpoints.path(step) / MANIFEST
        if not path.exists():
            return None
        files = json.loads(path.read_bytes())["files"]
        parts = "\n".join(files[name]["sha256"] for name in (WEIGHTS, TRAINING))
        return hashlib.sha256(parts.encode()).hexdigest()

    def check_config(self, allow_change: bool) -> None:
        """Reject a config that differs from the run's, unless `allow_change` is set.

        A run without a checkpoint starts over, so any config is accepted: it may fix the error
        that stopped the run. After that, only the keys in `EXECUTION_KEYS` may change.
        """
        path = self.directory / CONFIG
        if not (path.exists() and self.checkpoints.steps()):
            self.write_config()
            return
        changes = config.differences(config.load(Experiment, path), self.experiment, EXECUTION_KEYS)
        if changes and not allow_change:
            listed = "\n  ".join(changes)
            raise ConfigError(
                f"{self.directory}: this run started with another config:\n  {listed}\n"
                "Choose another ", Argument("output"), ", or continue with ",
                Argument("allow_change"),
            )  # fmt: skip

    def write_config(self) -> None:
        """Write the config into the directory. A resumed run does so after all checks."""
        path = self.directory / CONFIG
        try:
            make_directory(self.directory)
            write_file(path, config.dump(self.experiment).encode())
        except OSError as error:
            raise CheckpointError(
                f"{self.directory}: cannot be written ({error.strerror}); "
                "free some space or choose another ", Argument("output"),
            ) from error  # fmt: skip

    def restore(
        self, update: Update, init: Path | None, corpora: Corpora, allow_change: bool
    ) -> tuple[Progress, list[str]]:
        """Load the newest complete checkpoint into `update`; also return notes for the log.

        Rank 0 reads it and sends it to the other ranks. They need no access to its files, and
        cannot read different ones.
        """
        world, start = update.runtime.world, _StartingPoint()
        found = world.from_leader(lambda: start.read(self, init, corpora, allow_change))
        notes, self.init = found["notes"], found["init"]
        weights, training = world.spread(start.weights), world.spread(start.training)
        here = _fresh_progress(update.runtime, self.experiment.validation.metric)
        if weights:
            load_weights(update.model, weights, Path(found["origin"]))
        if not training:
            if update.ema is not None:
                update.ema.begin(update.model)
            return here, notes
        restore_training_tensors(update, training)
        _check_restored(update, Path(found["origin"]), found["sha256"])
        progress = Progress.from_json(found["state"])
        if found["micro_batches"] != self.experiment.batch.micro_batches:
            progress.position = progress.position.replanned(found["micro_batches"])
        if found["dev"] != (corpora.dev.hash if corpora.dev else None):
            progress.forget_best()
            notes.append("the development set has changed; the search for the best step restarts")
        measure = self.experiment.validation.measure
        if found["measure"] != measure:
            progress.forget_best()
            notes.append(
                f"the metric of the best step changed from {found['measure']} to {measure}; the "
                "search for the best step restarts"
            )
        progress.metric = here.metric
        update.suppressed.fill_(progress.suppressed)
        for name in ("threads", "ranks", "device", "torch"):
            before, now = getattr(progress, name), getattr(here, name)
            if before != now:
                notes.append(
                    f"{name} changed from {before} to {now}: the run continues, "
                    "but not bit for bit as it would have"
                )
                setattr(progress, name, now)
        return progress, notes

    def save(self, update: Update, progress: Progress, corpora: Corpora) -> None:
        """Write a checkpoint, then remove those that are no longer needed."""
        progress.suppressed = int(update.suppressed)
        tensors = _stored_tensors(update)
        if not update.runtime.world.leads:
            return
        log = self.directory / METRICS
        try:
            # A checkpoint must never be newer than the log on disk.
            flush(log)
        except OSError as error:
            raise CheckpointError(
                f"{log}: cannot be written ({error.strerror}); check the disk, then start again"
            ) from error
        write_directory(
            self.checkpoints.path(progress.step),
            tensors=tensors,
            texts={
                CONFIG: config.dump(self.experiment),
                STATE: json.dumps(progress.as_json(), indent=2),
            },
            folders=corpora.tokenizers,
            about={
                "transept": __version__,
                "torch": torch.__version__,
                "corpora": corpora.hashes,
                **({} if self.init is None else {"init": self.init}),
                "step": progress.step,
            },
        )
        self.checkpoints.prune(progress.best_step)

    def check_new(self, damages: list[str]) -> None:
        """Reject a directory with checkpoints that are all damaged, or with an older average."""
        steps = self.checkpoints.steps()
        if steps:
            listed = "\n  ".join(damages)
            there = counted(len(steps), "checkpoint")
            raise CheckpointError(
                f"{self.directory}: none of its {there} can be used:\n  {listed}\n"
                "Restore one from a backup; or, to start from scratch, choose another ",
                Argument("output"), f" or remove {self.checkpoints.directory}",
            )  # fmt: skip
        for average in sorted(self.directory.glob("average-*")):
            raise CheckpointError(
                f"{average}: belongs to an earlier training, and would be loaded instead of this "
                f"run when {self.directory} is used as a model; remove it, or choose another ",
                Argument("output"),
            )  # fmt: skip


def _stored_tensors(update: Update) -> dict[str, Tensors]:
    """The tensors of a checkpoint, by file name. All ranks must call this."""
    training = training_tensors(update)
    with update.averaged():
        weights = {name: weight.clone() for name, weight in weights_of(update.model).items()}
    return {WEIGHTS: weights, TRAINING: training}


def _check_restored(update: Update, checkpoint: Path, sha256: Mapping[str, str]) -> None:
    """Check that the tensors on the device equal the stored ones bit for bit."""
    stored = _stored_tensors(update)

    def check() -> None:
        for name, tensors in stored.items():
            if tensors_sha256(tensors) != sha256[name]:
                raise CheckpointError(
                    f"{checkpoint / name}: was not restored bit for bit; the config has probably "
                    "changed in training.ema_decay or the model. Resume with the original config"
                )

    update.runtime.world.from_leader(check)


def _fresh_progress(runtime: Runtime, metric: Metric) -> Progress:
    device = runtime.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Progress(
        metric=metric,
        threads=torch.get_num_threads(),
        ranks=runtime.world.size,
        device=name,
        torch=torch.__version__,
    )


@dataclass(slots=True)
class _StartingPoint:
    """The starting point of a run: its newest checkpoint, a model's weights, or random weights."""

    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    training: dict[str, torch.Tensor] = field(default_factory=dict)

    def read(
        self, run: Run, init: Path | None, corpora: Corpora, allow_change: bool
    ) -> dict[str, Any]:
        """Find the starting point, on rank 0. Keep the tensors here, and return the rest.

        The rest is sent to the other ranks as JSON, the tensors by `spread`.
        """
        with collected_warnings() as notes:
            newest = run.checkpoints.newest()
        if newest is None:
            run.check_new(notes)
            if init is not None:
                bundle = Bundle.open(find_model(init))
                _check_fit(run, bundle, init, corpora)
                self.weights = bundle.weights()
            named = None if init is None else str(init)
            return {"notes": notes, "origin": str(init), "init": named}
        _check_same_start(run, newest.about, init, corpora, allow_change)
        before = _check_fit(run, newest, newest.directory, corpora)
        self.weights, self.training = newest.weights(), newest.training()
        state = newest.state()
        run.checkpoints.discard_after(state["step"])
        return {
            "notes": notes,
            "origin": str(newest.directory),
            "init": newest.about.get("init"),
            "state": state,  # this and the following keys are set only if there is a checkpoint
            "micro_batches": _micro_batches(before.batch, run.experiment.batch),
            "measure": before.validation.measure,
            "dev": newest.about["corpora"].get(str(before.data.dev)),
            "sha256": dict(newest.sha256),
        }


def _micro_batches(before: BatchConfig, now: BatchConfig) -> int:
    """The checkpoint's micro-batches per batch, if nothing else in the batch config differs.

    Otherwise the current number, so that the checkpoint's position in the data is used as it is.
    """
    only = before == replace(now, micro_batches=before.micro_batches)
    return before.micro_batches if only else now.micro_batches


def _check_same_start(
    run: Run, about: Mapping[str, Any], init: Path | None, corpora: Corpora, allow_change: bool
) -> None:
    """Reject a different initial model, which would have no effect, and changed corpora."""
    before = about.get("init")
    if init is not None and str(init) != before:
        raise ConfigError(
            f"{run.directory}: this run started from {before or 'random weights'}, so ",
            Argument("init"), f" {init} would have no effect. To start from {init}, choose "
            "another ", Argument("output"), "; to continue this run, leave it out",
        )  # fmt: skip
    for path, hash in corpora.hashes.items():
        if about["corpora"].get(path, hash) != hash and not allow_change:
            raise ConfigError(
                f"{path}: is not the corpus that {run.directory} started with; choose another ",
                Argument("output"), ", restore that corpus, or continue with ",
                Argument("allow_change"),
            )  # fmt: skip


def _check_fit(run: Run, bundle: Bundle, name: Path, corpora: Corpora) -> Experiment:
    """Check that the weights were trained with this vocabulary and this architecture.

    Returns:
        The experiment that the weights were trained in.
    """
    learnt_with = tokenizers_in(bundle.directory)
    for folder in (TOKENIZER, TARGET_TOKENIZER):
        theirs = learnt_with.get(folder, bundle.directory / TOKENIZER)
        ours = corpora.tokenizers.get(folder, corpora.tokenizers[TOKENIZER])
        if load_vocabulary(theirs).sha256 != load_vocabulary(ours).sha256:
            raise VocabularyError(
                f"{name}: its {folder} differs from the corpus's; prepare the corpus with "
                f"--{folder.replace('_', '-')} {theirs}"
            )
    before = config.load(Experiment, bundle.directory / CONFIG)
    changes = config.differences(before.model, run.experiment.model, SAME_WEIGHTS)
    if changes:
        listed = "\n  ".join(f"model.{each}" for each in changes)
        raise CheckpointError(
            f"{name}: its weights were trained with another architecture:\n  {listed}\n"
            "Set these keys to its values, or train from random weights"
        )
    return before


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the warnings of `transept.checkpoint` in a list, filled when the block ends."""
    messages: list[str] = []
    handler = logging.handlers.BufferingHandler(sys.maxsize)
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("transept.checkpoint")
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        messages += [record.getMessage() for record in handler.buffer]
