"""A run's directory: what a training leaves there, and how another takes it up."""

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
from transept.training.state import Progress, restore_training_tensors, training_tensors
from transept.training.update import Update
from transept.version import __version__
from transept.wording import counted

METRICS = "metrics.jsonl"
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
"""Keys of a model that may change under weights that were learnt: these mean the same afterwards,
or they do not fit and are refused. With any other key changed, matrices of the same shape would
mean something else: those of eight heads are no good for four."""


@dataclass(slots=True)
class Run:
    """The directory of one training run: its config, its log and its checkpoints."""

    directory: Path
    experiment: Experiment
    init: str | None = None
    """The model that it began from, and not from random weights; known once it is restored."""

    @property
    def checkpoints(self) -> Checkpoints:
        """Where the run can be taken up again."""
        return Checkpoints(self.directory / CHECKPOINTS, self.experiment.checkpoint.keep)

    def state_hash(self, step: int) -> str | None:
        """The sha256 of all tensors that the run goes on from; None where it begins."""
        path = self.checkpoints.path(step) / MANIFEST
        if not path.exists():
            return None
        files = json.loads(path.read_bytes())["files"]
        parts = "\n".join(files[name]["sha256"] for name in (WEIGHTS, TRAINING))
        return hashlib.sha256(parts.encode()).hexdigest()

    def check_config(self, allow_change: bool) -> None:
        """Refuse to mix two experiments in one directory, unless told to.

        A run without a checkpoint starts over, so any config is accepted: it may be the cure of an
        error that stopped the run at once. Later, cures are about the `MEANS`.
        """
        path = self.directory / CONFIG
        if not (path.exists() and self.checkpoints.steps()):
            self.write_config()
            return
        changes = config.differences(config.load(Experiment, path), self.experiment, EXECUTION_KEYS)
        if changes and not allow_change:
            listed = "\n  ".join(changes)
            raise ConfigError(
                f"{self.directory}: this run began with another config:\n  {listed}\n"
                "Choose another ", Argument("output"), ", or continue with ",
                Argument("allow_change"),
            )  # fmt: skip

    def write_config(self) -> None:
        """Write the config into the directory; where a run goes on, after every check."""
        path = self.directory / CONFIG
        try:
            make_directory(self.directory)
            write_file(path, config.dump(self.experiment).encode())
        except OSError as error:
            raise CheckpointError(
                f"{self.directory}: the run cannot be written there ({error.strerror}); "
                "make room or choose another ", Argument("output"),
            ) from error  # fmt: skip

    def restore(
        self, update: Update, init: Path | None, corpora: Corpora, allow_change: bool
    ) -> tuple[Progress, list[str]]:
        """Put the newest whole checkpoint into `update`; with it come things worth saying.

        Rank 0 reads it, and the others are given what it has read: they need not see its files,
        and cannot see others.
        """
        world, beginning = update.runtime.world, _Beginning()
        found = world.from_leader(lambda: beginning.read(self, init, corpora, allow_change))
        notes, self.init = found["notes"], found["init"]
        weights, training = world.spread(beginning.weights), world.spread(beginning.training)
        here = _fresh_progress(update.runtime)
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
            progress.position = progress.position.planned_anew(found["micro_batches"])
        if found["dev"] != (corpora.dev.hash if corpora.dev else None):
            progress.forget_best()
            notes.append("the development set is another one: the best step is looked for anew")
        update.suppressed.fill_(progress.suppressed)
        for name in ("threads", "ranks", "device", "torch"):
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
        progress.suppressed = int(update.suppressed)
        tensors = _stored_tensors(update)
        if not update.runtime.world.leads:
            return
        log = self.directory / METRICS
        try:
            # Where there is a checkpoint, there is also the log of what led to it.
            flush(log)
        except OSError as error:
            raise CheckpointError(
                f"{log}: cannot be written ({error.strerror}); see to the disk, and start again"
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
                "Bring one back from a copy; or, to start from scratch, choose another ",
                Argument("output"), f" or remove {self.checkpoints.directory}",
            )  # fmt: skip
        for average in sorted(self.directory.glob("average-*")):
            raise CheckpointError(
                f"{average}: is of an earlier training, and {self.directory} as a model would mean "
                "it, not this one; remove it, or choose another ", Argument("output"),
            )  # fmt: skip


def _stored_tensors(update: Update) -> dict[str, Tensors]:
    """What a checkpoint holds of an update, by the names of its files; every rank takes part."""
    training = training_tensors(update)
    with update.averaged():
        weights = {name: weight.clone() for name, weight in weights_of(update.model).items()}
    return {WEIGHTS: weights, TRAINING: training}


def _check_restored(update: Update, checkpoint: Path, sha256: Mapping[str, str]) -> None:
    """What lies on the device must be what was stored, to the last bit."""
    stored = _stored_tensors(update)

    def check() -> None:
        for name, tensors in stored.items():
            if tensors_sha256(tensors) != sha256[name]:
                raise CheckpointError(
                    f"{checkpoint / name}: was not restored bit for bit: the config must have "
                    "changed, in training.ema_decay or the model; go on with the one it began with"
                )

    update.runtime.world.from_leader(check)


def _fresh_progress(runtime: Runtime) -> Progress:
    device = runtime.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return Progress(
        threads=torch.get_num_threads(),
        ranks=runtime.world.size,
        device=name,
        torch=torch.__version__,
    )


@dataclass(slots=True)
class _Beginning:
    """Where a run begins: at its newest checkpoint, at a model's weights, or at random ones."""

    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    training: dict[str, torch.Tensor] = field(default_factory=dict)

    def read(
        self, run: Run, init: Path | None, corpora: Corpora, allow_change: bool
    ) -> dict[str, Any]:
        """Look for it, on rank 0: keep the tensors here, and return the rest.

        The two go separate ways to the other ranks: the rest as JSON, the tensors by `spread`.
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
        _check_begun(run, newest.about, init, corpora, allow_change)
        before = _check_fit(run, newest, newest.directory, corpora)
        self.weights, self.training = newest.weights(), newest.training()
        state = newest.state()
        run.checkpoints.discard_after(state["step"])
        return {
            "notes": notes,
            "origin": str(newest.directory),
            "init": newest.about.get("init"),
            "state": state,  # this and what follows, only where there is a checkpoint
            "micro_batches": _micro_batches(before.batch, run.experiment.batch),
            "dev": newest.about["corpora"].get(str(before.data.dev)),
            "sha256": dict(newest.sha256),
        }


def _micro_batches(before: BatchConfig, now: BatchConfig) -> int:
    """How many a checkpoint's batches were cut into, if nothing else in the batch config differs.

    If more differs, the number of today: the checkpoint's place in the data is taken as it is.
    """
    only = before == replace(now, micro_batches=before.micro_batches)
    return before.micro_batches if only else now.micro_batches


def _check_begun(
    run: Run, about: Mapping[str, Any], init: Path | None, corpora: Corpora, allow_change: bool
) -> None:
    """Refuse another initial model, which would change nothing, or corpora prepared again."""
    before = about.get("init")
    if init is not None and str(init) != before:
        raise ConfigError(
            f"{run.directory}: this run began from {before or 'random weights'}, and ",
            Argument("init"), f" {init} would change nothing now. To start from {init}, choose "
            "another ", Argument("output"), "; to continue this run, leave it out",
        )  # fmt: skip
    for path, hash in corpora.hashes.items():
        if about["corpora"].get(path, hash) != hash and not allow_change:
            raise ConfigError(
                f"{path}: is not the corpus that {run.directory} began with; choose another ",
                Argument("output"), ", bring that corpus back, or continue with ",
                Argument("allow_change"),
            )  # fmt: skip


def _check_fit(run: Run, bundle: Bundle, name: Path, corpora: Corpora) -> Experiment:
    """Weights must read the vocabulary, and be of the network, that they were learnt with.

    Returns:
        The experiment that the weights were learnt in.
    """
    learnt_with = tokenizers_in(bundle.directory)
    for folder in (TOKENIZER, TARGET_TOKENIZER):
        theirs = learnt_with.get(folder, bundle.directory / TOKENIZER)
        ours = corpora.tokenizers.get(folder, corpora.tokenizers[TOKENIZER])
        if load_vocabulary(theirs).sha256 != load_vocabulary(ours).sha256:
            raise VocabularyError(
                f"{name}: its {folder} is not the corpus's: prepare the corpus with "
                f"--{folder.replace('_', '-')} {theirs}"
            )
    before = config.load(Experiment, bundle.directory / CONFIG)
    changes = config.differences(before.model, run.experiment.model, SAME_WEIGHTS)
    if changes:
        listed = "\n  ".join(f"model.{each}" for each in changes)
        raise CheckpointError(
            f"{name}: its weights were learnt in another network:\n  {listed}\n"
            "Give the config its values, or train from random weights"
        )
    return before


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """The warnings of `transept.checkpoint`, as a list that is complete at the end."""
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
