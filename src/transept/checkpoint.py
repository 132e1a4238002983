"""Model directories, written atomically and verified when they are opened.

A *bundle* is a model that can be used:

    manifest.json          metadata, and the size and sha256 of every other file
    weights.safetensors    the parameters, single precision, under their names in the network
    config.toml            the config of the experiment
    tokenizer/             the vocabulary (and target_tokenizer/ if there are two)

The weights of a *quantized* bundle are stored in less than single precision (`quantization.py`).
Its manifest has format 2 and records the precision.

A *checkpoint* is a bundle from which training can resume. It also has `training.safetensors` (the
optimizer's tensors) and `state.json` (the step and the position in the data). Nothing is pickled,
so reading a checkpoint never runs code. A directory is written under a temporary name, flushed to
disk and then renamed, so readers never see an incomplete one. safetensors detects a truncated file
but not a flipped bit, which is why the manifest has the sha256 of each file.
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
"""The directory of a run's checkpoints."""
EXPORTED = "model.bin"
"""A file that only models exported for CTranslate2 have."""

_STEP = re.compile(r"step-(\d{8,})")

Tensors = Mapping[str, Tensor]
log = logging.getLogger(__name__)


# --- one directory ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bundle:
    """A model directory, verified when it is opened."""

    directory: Path
    about: Mapping[str, Any]
    """Metadata from the manifest: versions, step, data."""
    precision: Precision = "fp32"
    """The precision in which its weights are stored."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of every file except the manifest."""

    @classmethod
    def open(cls, directory: Path | str) -> "Bundle":
        """Verify every file against the manifest. The error names the file that differs."""
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
        """The optimizer's tensors of a checkpoint."""
        return _read_tensors(self.directory / TRAINING)

    def state(self) -> dict[str, Any]:
        """The step and the position in the data of a checkpoint."""
        state: dict[str, Any] = json.loads((self.directory / STATE).read_bytes())
        return state

    @property
    def resumable(self) -> bool:
        """Whether training can resume from it."""
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
    """Write a bundle or checkpoint atomically.

    Args:
        directory: The new directory.
        tensors: The safetensors files by name.
        texts: The text files by name.
        folders: Directories to copy into it, such as the tokenizer, by name.
        about: Metadata for the manifest.
        precision: The precision of the weights, which `quantization.pack` has converted.
        replace: Whether to replace an existing directory. Without it, the directory must not exist.
    """
    with atomic_directory(directory, replace=replace) as part:
        for name, contents in tensors.items():
            save_file({key: value.contiguous() for key, value in contents.items()}, part / name)
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8")
        for name, folder in (folders or {}).items():
            copy_files(folder, part / name)
        _write_manifest(part, about, precision)
        for name in tensors:  # safetensors makes them readable only by their owner
            (part / name).chmod((part / MANIFEST).stat().st_mode)


@contextmanager
def atomic_directory(directory: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a temporary directory, and rename it to `directory` once it is flushed to disk."""
    try:
        with new_directory(directory, replace=replace) as part:
            yield part
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{directory}: cannot be written ({error}). Existing files are unchanged. "
            "Free some disk space or choose another directory, and try again"
        ) from error


def tokenizers_in(directory: Path) -> dict[str, Path]:
    """The directories of a model's vocabularies: one, or two if the target side has its own."""
    names = (TOKENIZER, TARGET_TOKENIZER)
    return {name: directory / name for name in names if (directory / name).exists()}


def read_about(directory: Path) -> Mapping[str, Any]:
    """The metadata of a bundle. Only the manifest is read and verified."""
    about: Mapping[str, Any] = _read_manifest(directory)["about"]
    return about


def origin_of(about: Mapping[str, Any]) -> dict[str, str]:
    """From the metadata of an imported model: its name, format and licence, as far as known."""
    names = ("imported_from", "format", "licence")
    return {name: str(about[name]) for name in names if about.get(name)}


def weights_sha256(directory: Path) -> str:
    """The sha256 of a bundle's weights, from its manifest. No other file is read."""
    stored = _read_manifest(directory)["files"].get(WEIGHTS)
    if stored is None:
        raise CheckpointError(f"{directory}: is not a model: it has no {WEIGHTS}")
    return str(stored["sha256"])


def load_weights(model: nn.Module, weights: Tensors, origin: Path) -> None:
    """Copy weights into a network. Raise an error that says how they differ if they do not fit."""
    parameters = dict(model.named_parameters())
    missing, unknown = parameters.keys() - weights.keys(), weights.keys() - parameters.keys()
    if missing or unknown:
        listed = ", ".join(sorted(missing or unknown)[:3])
        which = "lacks" if missing else "has unexpected weights"
        raise CheckpointError(f"{origin}: {which} {listed}: it belongs to another kind of model")
    for name, parameter in parameters.items():
        if parameter.shape != weights[name].shape:
            there, here = list(weights[name].shape), list(parameter.shape)
            cure = "another vocabulary" if "embedding" in name else "another size of model"
            raise CheckpointError(
                f"{origin}: {name} is {there}, and the model's is {here}: "
                f"it was trained with {cure}"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A network's parameters by name; a shared one appears once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def tensors_sha256(tensors: Tensors) -> str:
    """The sha256 of these tensors as a file, to compare with that in a manifest."""
    return hashlib.sha256(save({k: value.contiguous() for k, value in tensors.items()})).hexdigest()


def average(bundles: Sequence[Bundle]) -> dict[str, Tensor]:
    """The mean of each weight over several bundles, section 6.1."""
    sums: dict[str, Tensor] = {}
    for bundle in bundles:
        for name, weight in bundle.weights().items():
            if name in sums and sums[name].shape != weight.shape:
                raise CheckpointError(
                    f"{bundle.directory}: {name} has another shape than in the other checkpoints"
                )
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + weight
    return {name: (total / len(bundles)).float() for name, total in sums.items()}


# --- a run's checkpoints ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of one run, by step.

    A checkpoint is regular if it was written at a regular interval or at the run's end, and not
    because of a best validation or a signal. The last `keep` regular checkpoints, the best one and
    the newest one are kept.
    """

    directory: Path
    keep: int = 5

    def path(self, step: int) -> Path:
        """The directory of a step's checkpoint."""
        return self.directory / f"step-{step:08d}"

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        names = (_STEP.fullmatch(path.name) for path in self.directory.glob("step-*"))
        return sorted(int(name[1]) for name in names if name)

    def open(self, step: int) -> Bundle:
        """Open and verify the checkpoint of a step."""
        bundle = Bundle.open(self.path(step))
        made_at = bundle.about.get("step", step)
        if made_at != step:
            raise CheckpointError(
                f"{bundle.directory}: holds step {made_at}, but its name says step {step}"
            )
        return bundle

    def regular_steps(self, since: float = 0.0) -> list[int]:
        """The steps of regular checkpoints, which can be averaged. Default: the newest step.

        Args:
            since: Ignore checkpoints from the first `since` seconds of training.
        """
        steps = self.steps()
        return [step for step in steps if _is_regular(self.path(step), since)] or steps[-1:]

    def newest(self) -> Bundle | None:
        """The newest undamaged checkpoint. Damaged ones are skipped with a warning."""
        for bundle in self._undamaged(self.steps()):
            if bundle.resumable:
                return bundle
        return None

    def last(self, n: int) -> list[Bundle]:
        """The last `n` undamaged checkpoints of `regular_steps`, oldest first."""
        return [*islice(self._undamaged(self.regular_steps()), n)][::-1]

    def discard_after(self, step: int) -> None:
        """Remove checkpoints newer than `step`: damaged ones, which a resumed run writes again."""
        for later in self.steps():
            if later > step:
                remove_directory(self.path(later))
        self._remove_temporary()

    def prune(self, best: int | None) -> None:
        """Remove all checkpoints except the last `keep` regular ones, the best and the newest."""
        steps = self.steps()
        kept = {*self.regular_steps()[-self.keep :], *steps[-1:], best}
        for step in steps:
            if step not in kept:
                remove_directory(self.path(step))
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        """Remove temporary directories of processes that were killed."""
        for stray in self.directory.glob(part_of(Path("step-*")).name):
            shutil.rmtree(stray, ignore_errors=True)

    def _undamaged(self, steps: Sequence[int]) -> Iterator[Bundle]:
        """The undamaged checkpoints of these steps, newest first."""
        for step in reversed(steps):
            try:
                bundle = self.open(step)
            except CheckpointError as error:
                log.warning("%s; using the previous checkpoint instead", error)
            else:
                yield bundle


def _is_regular(checkpoint: Path, since: float) -> bool:
    """Whether a checkpoint is regular. Old states do not say; damaged ones are found by `open`."""
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
                f"{directory}: is a corpus of `transept data prepare`, not a model; check the path"
            )
        known = _check_shape(manifest)
    except FileNotFoundError as error:
        if (directory / EXPORTED).exists():
            raise CheckpointError(
                f"{directory}: is a CTranslate2 model, which transept cannot open; give the "
                "model that it was exported from"
            ) from error
        raise CheckpointError(
            f"{directory}: is not a model directory (no {MANIFEST}); check the path"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: is damaged ({error}); use another copy") from error
    if not known:
        raise CheckpointError(
            f"{path}: has format {manifest['format']}; this version of transept reads formats "
            f"{FORMAT} and {QUANTIZED}. Use the version that wrote it"
        )
    return manifest


def _check_shape(manifest: Mapping[str, Any]) -> bool:
    """Whether the manifest's format is known. Raise an error if its keys do not match it."""
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
    # The newer format is used only if needed, so that older versions can read the rest.
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
            f"{path}: is damaged: it has {size:,} bytes, not {expected['bytes']:,}"
        )
    if sha256 != expected["sha256"]:
        raise CheckpointError(f"{path}: is damaged: its sha256 is not the one in {MANIFEST}")


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error
