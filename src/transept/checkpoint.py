"""Model directories: written at once or not at all, verified before they are believed.

A *bundle* is a model that can be used:

    manifest.json          what it is, and the size and sha256 of every other file
    weights.safetensors    the parameters, single precision, under their names in the network
    config.toml            the experiment that made it
    tokenizer/             the vocabulary (and target_tokenizer/, where there are two)

The weights of a *quantized* bundle are stored in less than single precision (`quantization.py`);
its manifest is of format 2 and says in what.

A *checkpoint* is a bundle that training can go on from: it also has `training.safetensors` (the
optimizer's tensors) and `state.json` (the step, the place in the data). Nothing is pickled, so
nothing runs when it is read. A directory is filled under another name, flushed to disk, and then
renamed: whoever sees it sees all of it. safetensors notices a file that was cut short but not a
flipped bit, which is why each file has its sha256 in the manifest.
"""

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save, save_file
from torch import Tensor, nn

from transept.errors import CheckpointError
from transept.quantization import PRECISIONS, Precision, unpack
from transept.runtime.storage import (
    Stored,
    copy_files,
    digest,
    new_directory,
    part_of,
    remove_directory,
    sealed,
    unsealed,
)

FORMAT, QUANTIZED = 1, 2
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
CONFIG = "config.toml"
TOKENIZER = "tokenizer"
TARGET_TOKENIZER = "target_tokenizer"
TRAINING = "training.safetensors"
STATE = "state.json"
CHECKPOINTS = "checkpoints"
"""Where the checkpoints of a run lie."""
EXPORTED = "model.bin"
"""What `transept export` leaves for CTranslate2, and no model of transept has."""

_STEP = re.compile(r"step-(\d{8,})")

Tensors = Mapping[str, Tensor]
log = logging.getLogger(__name__)


# --- one directory ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bundle:
    """A directory that was verified when it was opened."""

    directory: Path
    about: Mapping[str, Any]
    """What its maker said of it: versions, step, data."""
    precision: Precision = "fp32"
    """The precision in which its weights are stored."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Of every file but the manifest."""

    @classmethod
    def open(cls, directory: Path | str) -> "Bundle":
        """Check every file against the manifest, or say which one is wrong."""
        directory = Path(directory)
        manifest = _read_manifest(directory)
        for name, expected in manifest["files"].items():
            _verify_file(directory / name, expected)
        hashes = {name: stored["sha256"] for name, stored in manifest["files"].items()}
        return cls(directory, manifest["about"], manifest.get("precision", "fp32"), hashes)

    def weights(self) -> dict[str, Tensor]:
        """The parameters by their names, in single precision."""
        path = self.directory / WEIGHTS
        return unpack(_read_tensors(path), self.precision, path)

    def training(self) -> dict[str, Tensor]:
        """The optimizer's tensors, where it is a checkpoint."""
        return _read_tensors(self.directory / TRAINING)

    def state(self) -> dict[str, Any]:
        """The step and the place in the data, where it is a checkpoint."""
        state: dict[str, Any] = json.loads((self.directory / STATE).read_bytes())
        return state

    @property
    def resumable(self) -> bool:
        """Whether training can go on from it."""
        return (self.directory / STATE).exists()


def write_directory(
    directory: Path,
    *,
    tensors: Mapping[str, Tensors],
    texts: Mapping[str, str],
    folders: Mapping[str, Path] | None = None,
    about: Mapping[str, Any],
    precision: Precision = "fp32",
    replace: bool = False,
) -> None:
    """Write a bundle or checkpoint, at once or not at all.

    Args:
        directory: Where it shall appear.
        tensors: The safetensors files by name.
        texts: The text files by name.
        folders: Directories to copy in, such as the tokenizer's.
        about: What the manifest shall say of it.
        precision: The precision of the weights, as `quantization.pack` gave them.
        replace: Whether to replace a directory that is there; otherwise there must be none.
    """
    with at_once(directory, replace=replace) as part:
        for name, contents in tensors.items():
            save_file({key: value.contiguous() for key, value in contents.items()}, part / name)
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8")
        for name, folder in (folders or {}).items():
            copy_files(folder, part / name)
        _write_manifest(part, about, precision)
        for name in tensors:  # safetensors writes them such that only their owner can read them
            (part / name).chmod((part / MANIFEST).stat().st_mode)


@contextmanager
def at_once(directory: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary directory to fill, which is renamed to this one when all of it is on the disk."""
    try:
        with new_directory(directory, replace=replace) as part:
            yield part
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{directory}: cannot be written ({error}); what was there before is untouched. "
            "Make room or choose another place, and start again"
        ) from error


def tokenizers_in(directory: Path) -> dict[str, Path]:
    """A model's vocabularies by their names: one, or two where the target has its own."""
    names = (TOKENIZER, TARGET_TOKENIZER)
    return {name: directory / name for name in names if (directory / name).exists()}


def read_about(directory: Path) -> Mapping[str, Any]:
    """What its maker said of a bundle; nothing but the manifest is read and verified."""
    told: Mapping[str, Any] = _read_manifest(directory)["about"]
    return told


def weights_sha256(directory: Path) -> str:
    """Which weights a bundle holds, as its manifest has it; nothing else is read and verified."""
    stored = _read_manifest(directory)["files"].get(WEIGHTS)
    if stored is None:
        raise CheckpointError(f"{directory}: holds no {WEIGHTS}: it is no model")
    return str(stored["sha256"])


def load_weights(model: nn.Module, weights: Tensors, origin: Path) -> None:
    """Put weights into a network, or say how the two differ."""
    parameters = dict(model.named_parameters())
    missing, unknown = parameters.keys() - weights.keys(), weights.keys() - parameters.keys()
    if missing or unknown:
        listed = ", ".join(sorted(missing or unknown)[:3])
        which = "lacks" if missing else "has, unlike the model,"
        raise CheckpointError(f"{origin}: {which} {listed}: it was made by another kind of model")
    for name, parameter in parameters.items():
        if parameter.shape != weights[name].shape:
            there, here = list(weights[name].shape), list(parameter.shape)
            cure = "another vocabulary" if "embedding" in name else "another size of model"
            raise CheckpointError(
                f"{origin}: {name} is {there}, and the model's is {here}: it was made with {cure}"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A network's parameters by name; a shared one appears once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def tensors_sha256(tensors: Tensors) -> str:
    """The sha256 that a file of these tensors would have, to compare with one in a manifest."""
    return hashlib.sha256(save({k: value.contiguous() for k, value in tensors.items()})).hexdigest()


def average(bundles: Sequence[Bundle]) -> dict[str, Tensor]:
    """The mean of each weight over several bundles, section 6.1."""
    sums: dict[str, Tensor] = {}
    for bundle in bundles:
        for name, weight in bundle.weights().items():
            if name in sums and sums[name].shape != weight.shape:
                raise CheckpointError(f"{bundle.directory}: {name} has another shape than before")
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + weight
    return {name: (total / len(bundles)).float() for name, total in sums.items()}


# --- a run's checkpoints ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of one run, by step.

    A checkpoint is regular if it was written at a regular interval or at the run's end, and not
    because of a best validation or a signal. The last `keep` regular ones are kept, and besides
    them the best checkpoint and the newest.
    """

    directory: Path
    keep: int = 5

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.directory / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, in order."""
        names = (_STEP.fullmatch(path.name) for path in self.directory.glob("step-*"))
        return sorted(int(name[1]) for name in names if name)

    def open(self, step: int) -> Bundle:
        """The checkpoint of a step, verified."""
        bundle = Bundle.open(self.path(step))
        made_at = bundle.about.get("step", step)
        if made_at != step:
            raise CheckpointError(f"{bundle.directory}: is of step {made_at}, under a wrong name")
        return bundle

    def regular_steps(self, since: float = 0.0) -> list[int]:
        """The steps of regular checkpoints, of which an average is made; or else the newest step.

        Args:
            since: Leave out checkpoints from before so many seconds of training.
        """
        steps = self.steps()
        return [step for step in steps if _is_regular(self.path(step), since)] or steps[-1:]

    def newest(self) -> Bundle | None:
        """The newest checkpoint that is whole. A damaged one is named and passed over."""
        for bundle in self._whole(self.steps()):
            if bundle.resumable:
                return bundle
        return None

    def last(self, n: int) -> list[Bundle]:
        """The last `n` checkpoints of `regular_steps` that are whole, oldest first."""
        return [*islice(self._whole(self.regular_steps()), n)][::-1]

    def discard_after(self, step: int) -> None:
        """Remove what is newer than `step`: damaged checkpoints that a resumed run writes anew."""
        for later in self.steps():
            if later > step:
                remove_directory(self.path(later))
        self._sweep()

    def prune(self, best: int | None) -> None:
        """Remove all but the last `keep` regular ones, the best and the newest."""
        steps = self.steps()
        kept = {*self.regular_steps()[-self.keep :], *steps[-1:], best}
        for step in steps:
            if step not in kept:
                remove_directory(self.path(step))
        self._sweep()

    def _sweep(self) -> None:
        """Remove what was left behind by a process that was killed while it saved or removed."""
        for stray in self.directory.glob(part_of(Path("step-*")).name):
            shutil.rmtree(stray, ignore_errors=True)

    def _whole(self, steps: Sequence[int]) -> Iterator[Bundle]:
        """The checkpoints of these steps that are whole, newest first."""
        for step in reversed(steps):
            try:
                bundle = self.open(step)
            except CheckpointError as error:
                log.warning("%s; passing over it to the one before", error)
            else:
                yield bundle


def _is_regular(checkpoint: Path, since: float) -> bool:
    """Whether its state says so, or does not say: it is older, or damaged, as `open` will tell."""
    try:
        state = json.loads((checkpoint / STATE).read_bytes())
        return bool(state.get("regular", True)) and state.get("seconds", since) >= since
    except (OSError, ValueError, AttributeError):
        return True


# --- files -----------------------------------------------------------------------------------


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    try:
        manifest = unsealed(path.read_bytes())
        if "pairs" in manifest:
            raise CheckpointError(
                f"{directory}: is a corpus of `transept data prepare` and no model; check the path"
            )
        known = _check_shape(manifest)
    except FileNotFoundError as error:
        if (directory / EXPORTED).exists():
            raise CheckpointError(
                f"{directory}: is a model for CTranslate2, which transept does not open; give the "
                "model that it was exported from"
            ) from error
        raise CheckpointError(
            f"{directory}: is no model directory: it has no {MANIFEST}; check the path"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: is damaged ({error}); use another copy") from error
    if not known:
        raise CheckpointError(
            f"{path}: is of format {manifest['format']}; this transept reads {FORMAT} and "
            f"{QUANTIZED}. Use the version that wrote it"
        )
    return manifest


def _check_shape(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest's format is known. One that breaks its own format's rules raises."""
    kind = {FORMAT: {"format"}, QUANTIZED: {"format", "precision"}}.get(manifest["format"])
    if kind is None:
        return False
    if manifest.keys() != kind | {"about", "files"}:
        raise ValueError(f"its keys are {', '.join(manifest)}")
    if "precision" in kind and manifest["precision"] not in PRECISIONS:
        return False
    manifest["about"].keys()
    for stored in manifest["files"].values():
        stored["bytes"], stored["sha256"]
    return True


def _write_manifest(directory: Path, about: Mapping[str, Any], precision: Precision) -> None:
    files = {
        str(path.relative_to(directory)): asdict(Stored.of(path))
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    # The newer format only where it must be: an older transept can read all else.
    kind = (
        {"format": FORMAT} if precision == "fp32" else {"format": QUANTIZED, "precision": precision}
    )
    manifest = {**kind, "about": dict(about), "files": files}
    (directory / MANIFEST).write_bytes(sealed(manifest))


def _verify_file(path: Path, expected: Mapping[str, Any]) -> None:
    try:
        size = path.stat().st_size
        sha256 = digest(path) if size == expected["bytes"] else ""
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    if size != expected["bytes"]:
        raise CheckpointError(
            f"{path}: is damaged: it has {size:,} bytes instead of {expected['bytes']:,}"
        )
    if sha256 != expected["sha256"]:
        raise CheckpointError(f"{path}: is damaged: its sha256 is not the one in {MANIFEST}")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error
