"""The composition root: configs become built objects here, by plain calls, and are run."""

import dataclasses
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from transept import config
from transept.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    MANIFEST,
    STATE,
    TRAINING,
    WEIGHTS,
    Bundle,
    Checkpoints,
    Tensors,
    average,
    load_weights,
    tensors_sha256,
    weights_of,
    write_directory,
)
from transept.data.batching.feed import Feed
from transept.data.batching.loader import Loader
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Position
from transept.data.shards import Corpus
from transept.errors import CheckpointError, ConfigError, Problem, VocabularyError
from transept.experiment import Experiment
from transept.model.packing import Tokens
from transept.model.transformer import Transformer
from transept.runtime.determinism import order_of
from transept.runtime.device import Runtime
from transept.runtime.interrupt import stop_requests
from transept.runtime.seed import seed_torch
from transept.text.symbols import load_vocabulary
from transept.training.batches import to_batch, to_global_batch
from transept.training.fused.fit import obstacles
from transept.training.loss import Loss
from transept.training.observers import MetricsLog, Observer, TensorBoard, read_metrics
from transept.training.progress import Progress
from transept.training.rehearsal import rehearse
from transept.training.schedule import Schedule
from transept.training.trainer import GlobalBatch, Outcome, Trainer
from transept.training.update import (
    Batch,
    MovingAverage,
    Update,
    make_adam,
    restore_training_tensors,
    training_tensors,
)
from transept.training.validation import Validation, validate
from transept.version import __version__

METRICS = "metrics.jsonl"


# --- training --------------------------------------------------------------------------------


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
    with order_of(experiment.training.sums):
        return _train(experiment, directory, init, minutes, allow_change, tensorboard, observers)


def _train(
    experiment: Experiment,
    directory: Path,
    init: Path | None,
    minutes: float | None,
    allow_change: bool,
    tensorboard: bool,
    observers: Sequence[Observer],
) -> Outcome:
    corpora = Corpora.open(experiment)
    experiment = corpora.fit(experiment)
    run = Run(directory, experiment)
    run.check_config(allow_change)
    runtime = Runtime.choose(experiment.training.device, experiment.training.precision)
    update = build_update(experiment, runtime)
    progress, notes = run.restore(update, init, corpora)
    notes += _slowness(experiment, runtime)
    log = MetricsLog(directory / METRICS, resume_from=progress.step)
    boards = [TensorBoard(directory / "tensorboard")] if tensorboard else []
    own: list[Observer] = [log, *boards]
    watchers = [*own, *observers]
    try:
        for text in notes:
            _tell(watchers, {"kind": "warning", "step": progress.step, "text": text})
        _tell(watchers, _start_line(run, update, corpora, progress))
        _rehearse(update, experiment)
        trainer = Trainer(
            update=update,
            data=lambda at: _training_data(experiment, corpora, runtime, at),
            save=lambda progress: run.save(update, progress, corpora),
            validate=_validation(experiment, corpora, update),
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


def build_update(experiment: Experiment, runtime: Runtime) -> Update:
    """A fresh network, its optimizer and its loss: in the fast form where there is one for it."""
    seed_torch(experiment.training.seed, "weights")
    model = Transformer(experiment.model).to(runtime.device)
    decay = experiment.training.ema_decay
    update = _kind_of_update(experiment, runtime)(
        model,
        adam=make_adam(model, experiment.adam),
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
        update.states = torch.compile(update.states, dynamic=False)
    return update


def _kind_of_update(experiment: Experiment, runtime: Runtime) -> Callable[..., Update]:
    """The fast form where the device and the network allow it."""
    wanted = runtime.device.type == "cuda" and experiment.training.kernels == "auto"
    if not wanted or slow_because(experiment, runtime):
        return Update
    from transept.training.fused.network import Tiles
    from transept.training.fused.update import FusedUpdate

    batch = experiment.batch
    tiles = Tiles(batch.tile, batch.row_tiles)
    return partial(FusedUpdate, tiles=tiles, micro_batches=batch.micro_batches)


def _slowness(experiment: Experiment, runtime: Runtime) -> list[str]:
    """A line for whoever expects the fast form and does not get it."""
    reasons = slow_because(experiment, runtime)
    if runtime.device.type != "cuda" or experiment.training.kernels != "auto" or not reasons:
        return []
    return [
        f"our own kernels do not know {', '.join(reasons)}: PyTorch's are used instead, "
        "which is about half as fast"
    ]


def slow_because(experiment: Experiment, runtime: Runtime) -> list[str]:
    """What stands in the way of the fast training step; nothing, for the paper's network."""
    if find_spec("triton") is None:
        return ["Triton is not installed"]
    reasons = obstacles(experiment.model, experiment.batch.tile)
    if experiment.batch.layout != "packed":
        reasons.append(f"batch.layout = {experiment.batch.layout!r}")
    if runtime.precision != "bf16":
        reasons.append(f"training.precision = {runtime.precision!r}")
    return reasons


@dataclass(frozen=True, slots=True)
class Corpora:
    """The opened corpora of an experiment."""

    train: Mixture
    dev: Corpus | None
    tokenizers: dict[str, Path]
    """What a bundle copies: `tokenizer`, and `target_tokenizer` where it is another one."""
    vocab_sizes: dict[str, int]
    """Of `source` and `target`."""

    @classmethod
    def open(cls, experiment: Experiment) -> "Corpora":
        """Open them, and check that they were made for one another."""
        entries = experiment.data.train
        if not entries:
            what = "is empty: name a corpus that `transept data prepare` wrote"
            raise ConfigError([Problem("data.train", what)])
        corpora = [Corpus.open(entry.path) for entry in entries]
        dev = None if experiment.data.dev is None else Corpus.open(experiment.data.dev)
        first = corpora[0]
        for corpus in [*corpora, *([dev] if dev else [])]:
            _check_vocabularies(corpus, first)
        tokenizers = {"tokenizer": first.source_tokenizer}
        if first.target_tokenizer != first.source_tokenizer:
            tokenizers["target_tokenizer"] = first.target_tokenizer
        mixture = Mixture(corpora, [entry.weight for entry in entries])
        sizes = {side: first.manifest.side(side).vocab_size for side in ("source", "target")}
        return cls(mixture, dev, tokenizers, sizes)

    def fit(self, experiment: Experiment) -> Experiment:
        """The experiment with the sizes of these vocabularies, which must be those it names."""
        model = experiment.model.with_vocabularies(**self.vocab_sizes)
        named = {"target": model.vocab_size, "source": model.source_vocab_size or model.vocab_size}
        for side, size in named.items():
            there = self.vocab_sizes[side]
            if there != size:
                key = "model.vocab_size" if side == "target" else "model.source_vocab_size"
                where = experiment.data.train[0].path
                what = f"{size} is not the {there} of {where}; set {key}={there}"
                raise ConfigError([Problem(key, what)])
        return dataclasses.replace(experiment, model=model)


def _check_vocabularies(corpus: Corpus, first: Corpus) -> None:
    ours, theirs = corpus.manifest.settings, first.manifest.settings
    if (ours.source_tokenizer, ours.target_tokenizer) != (
        theirs.source_tokenizer,
        theirs.target_tokenizer,
    ):
        raise VocabularyError(
            f"{corpus.directory} and {first.directory} were prepared with different tokenizers: "
            "prepare them with the same one"
        )


def _training_data(
    experiment: Experiment, corpora: Corpora, runtime: Runtime, start: Position
) -> Iterator[GlobalBatch]:
    feed = Feed(
        mixture=corpora.train,
        config=experiment.batch,
        seed=experiment.training.seed,
        start=start,
    )
    with Loader(feed, workers=experiment.data.workers) as loader:
        for loaded in loader:
            yield to_global_batch(loaded, experiment.model, runtime)


def _validation(
    experiment: Experiment, corpora: Corpora, update: Update
) -> Callable[[], Validation] | None:
    if corpora.dev is None:
        return None
    dev = Mixture([corpora.dev])
    # Long sentences count on the development set too, whatever training leaves out.
    longest = max(int(dev.source_lengths.max()), int(dev.target_lengths.max()))
    batch = dataclasses.replace(
        experiment.batch,
        layout="by_length",
        micro_batches=1,
        max_length=longest,
        source_tokens=max(longest, experiment.batch.source_tokens),
        target_tokens=max(longest, experiment.batch.target_tokens),
    )
    feed = Feed(mixture=dev, config=batch, seed=0, epochs=1)

    def batches() -> Iterator[tuple[Batch, int]]:
        with Loader(feed) as loader:
            for loaded in loader:
                for micro in loaded.to(update.runtime.device).micro_batches:
                    yield to_batch(micro, update.runtime), micro.n_target_tokens

    return lambda: validate(update, batches())


def _rehearse(update: Update, experiment: Experiment) -> None:
    """Try a batch whose every place is taken, before there is anything to lose."""
    batch, device = experiment.batch, update.runtime.device
    side = min(batch.source_tokens, batch.target_tokens) // batch.micro_batches
    tile = min(batch.tile * batch.row_tiles, side)

    model = experiment.model
    in_both = min(model.vocab_size, model.source_vocab_size or model.vocab_size) - 1

    def full(divisor: int) -> Batch:
        rows = max(1, side // divisor // tile)
        ids = torch.full((rows, tile), in_both, device=device)
        tokens = Tokens.padded(ids, experiment.model.pad_id)
        return Batch(tokens, tokens)

    rehearse(update, full(1), smaller=full, divisors=(2, 4, 8, 16, 32, 64, 128))


# --- a run's directory -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """The directory of one training run: its config, its log and its checkpoints."""

    directory: Path
    experiment: Experiment

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
        self.directory.mkdir(parents=True, exist_ok=True)
        path.write_text(config.dump(self.experiment), encoding="utf-8")

    def restore(
        self, update: Update, init: Path | None, corpora: Corpora
    ) -> tuple[Progress, list[str]]:
        """Put the newest whole checkpoint into `update`; with it come things worth saying."""
        with _collected_warnings() as notes:
            newest = self.checkpoints.newest()
        if newest is None:
            if init is not None:
                _initialise_from(init, update, corpora)
            return _fresh_progress(update.runtime), notes
        load_weights(update.model, newest.weights(), newest.directory)
        restore_training_tensors(update, newest.training())
        _check_restored(update, newest)
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
        path = self.checkpoints.path(progress.step)
        if path.exists():
            return
        progress.suppressed = int(update.suppressed)
        write_directory(
            path,
            tensors=_stored_tensors(update),
            texts={
                CONFIG: config.dump(self.experiment),
                STATE: json.dumps(progress.as_json(), indent=2),
            },
            folders=corpora.tokenizers,
            about=_about(self.experiment) | {"step": progress.step},
        )
        self.checkpoints.prune(progress.best_step)


def _stored_tensors(update: Update) -> dict[str, Tensors]:
    """All that a checkpoint holds of an update, by the names of its files."""
    with update.averaged():
        weights = {name: weight.clone() for name, weight in weights_of(update.model).items()}
    return {WEIGHTS: weights, TRAINING: training_tensors(update)}


def _check_restored(update: Update, checkpoint: Bundle) -> None:
    """What lies on the device must be what was stored, to the last bit."""
    for name, tensors in _stored_tensors(update).items():
        if tensors_sha256(tensors) != checkpoint.sha256[name]:
            raise CheckpointError(
                f"{checkpoint.directory / name}: was not restored bit for bit: the config must "
                "have changed, in training.ema_decay or the model; go on with the one it began with"
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
        "state": run.state_hash(progress.step),
        "text": f"{run.directory}: {begin}; {n_parameters:,} parameters, "
        f"{len(corpora.train):,} pairs, {where}",
    }


def _tell(observers: Sequence[Observer], line: dict[str, Any]) -> None:
    for observer in observers:
        observer.observe(line)


class _collected_warnings(logging.Handler):  # noqa: N801  (used as a context manager)
    """The warnings of `transept.checkpoint`, as a list."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def __enter__(self) -> list[str]:
        logging.getLogger("transept.checkpoint").addHandler(self)
        return self.messages

    def __exit__(self, *error: object) -> None:
        logging.getLogger("transept.checkpoint").removeHandler(self)


# --- averaging -------------------------------------------------------------------------------


def average_run(
    run: Path, *, last: int, output: Path | None, force: bool
) -> tuple[Path, list[int]]:
    """The mean of a run's last checkpoints as a bundle; where it lies, and of which steps."""
    bundles = Checkpoints(run / CHECKPOINTS).last(last)
    if len(bundles) < last:
        raise CheckpointError(
            f"{run}: has {len(bundles)} whole checkpoints and not {last}; "
            f"choose --last {len(bundles) or 1} or train on with a larger checkpoint.keep"
        )
    directory = output or run / f"average-{last}"
    if directory.exists():
        if not force:
            raise CheckpointError(f"{directory}: is there already; --force replaces it")
        shutil.rmtree(directory)
    newest = bundles[-1]
    steps = [int(bundle.about["step"]) for bundle in bundles]
    names = [
        name for name in ("tokenizer", "target_tokenizer") if (newest.directory / name).exists()
    ]
    write_directory(
        directory,
        tensors={WEIGHTS: average(bundles)},
        texts={CONFIG: (newest.directory / CONFIG).read_text(encoding="utf-8")},
        folders={name: newest.directory / name for name in names},
        about={**newest.about, "averaged_steps": steps},
    )
    return directory, steps


# --- telling what a directory is -------------------------------------------------------------


def describe(path: Path) -> dict[str, Any]:
    """Everything about a run, a checkpoint or a bundle, every file of it verified."""
    if (path / CHECKPOINTS).is_dir():
        return _describe_run(path)
    return _describe_bundle(Bundle.open(path))


def _describe_run(path: Path) -> dict[str, Any]:
    checkpoints = Checkpoints(path / CHECKPOINTS)
    with _collected_warnings() as damaged:
        newest = checkpoints.newest()
    if newest is None:
        raise CheckpointError(f"{path}: has no whole checkpoint yet; train it first")
    lines = read_metrics(path / METRICS)
    of_kind = {kind: [x for x in lines if x["kind"] == kind] for kind in ("step", "validation")}
    hidden = ("kind", "text")
    latest = {
        f"last {kind}": {key: value for key, value in found[-1].items() if key not in hidden}
        for kind, found in of_kind.items()
        if found
    }
    state = newest.state()
    return {
        "run": str(path),
        "checkpoints": checkpoints.steps(),
        "damaged": damaged or "none",
        "best": {"step": state["best_step"], "nll": state["best_nll"]},
        **latest,
        "newest": str(newest.directory),
        **_describe_bundle(newest),
    }


def _describe_bundle(bundle: Bundle) -> dict[str, Any]:
    weights = bundle.weights()
    experiment = config.load(Experiment, bundle.directory / CONFIG)
    files = [path for path in bundle.directory.rglob("*") if path.is_file()]
    report: dict[str, Any] = {
        "kind": "checkpoint" if bundle.resumable else "model",
        "made by": dict(bundle.about),
        "parameters": sum(weight.numel() for weight in weights.values()),
        "stored in": bundle.precision,
        "bytes": sum(path.stat().st_size for path in files),
        "verified": f"{len(files)} files",
    }
    if bundle.resumable:
        report["state"] = {key: str(value) for key, value in bundle.state().items()}
    return report | {name: config.as_table(getattr(experiment, name)) for name in SECTIONS}


SECTIONS = [field.name for field in dataclasses.fields(Experiment)]
