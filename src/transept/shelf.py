"""Find models: `--model` means the same for every command."""

import logging
import os
from functools import cache
from pathlib import Path

from transept.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    MANIFEST,
    TOKENIZER,
    Checkpoints,
    read_about,
    tokenizers_in,
)
from transept.errors import Argument, CheckpointError, ConfigError

SHELF = Path(__file__).parent / "models"
"""The directory of the bundled models, each in a subdirectory with its name."""
SHELVES = "TRANSEPT_MODELS"
"""The environment variable for additional directories of models, which take precedence."""
RUN = "run"
"""The subdirectory of the run in the directory of a demo or a recipe."""
DEFAULT = "en-de"
"""The bundled model that is used by default."""
log = logging.getLogger(__name__)


def find_model(name: Path | str | None = None) -> Path:
    """The directory of a model, given by name or path. Default: the default bundled model."""
    shipped = shipped_models()
    if name is None:
        return _default(shipped)
    path = Path(name)
    if path.is_dir() and (str(name) not in shipped or _holds_a_model(path)):
        is_work = (path / RUN / CHECKPOINTS).is_dir() and not (path / MANIFEST).exists()
        run = path / RUN if is_work else path
        found = model_of(run)
        _warn_if_older(found, run)
        return found
    if str(name) in shipped:
        return shipped[str(name)]
    if path.exists():
        raise CheckpointError(f"{path}: is a file; give the directory of a model")
    # No similar name is suggested: en-fr is not a misspelt en-de.
    known = f"Bundled models: {', '.join(shipped)}" if shipped else "Check the path"
    raise CheckpointError(f"{path}: is neither a directory nor a bundled model. {known}")


def find_tokenizer(name: Path | str, which: str = TOKENIZER) -> Path:
    """The directory of a tokenizer, given by path, or by the name or path of a model.

    For a model, it is the model's tokenizer. If `which` is `TARGET_TOKENIZER` and the two sides
    have different ones, it is the one of the target side.
    """
    path = Path(name)
    if not is_model(name):
        return path
    own = tokenizers_in(find_model(name))
    return own.get(which) or own.get(TOKENIZER) or path


def is_model(name: Path | str) -> bool:
    """Whether this is the name of a bundled model, or the directory of a model or a run.

    A corpus has a manifest too, but neither a config nor checkpoints.
    """
    parts = (CONFIG, CHECKPOINTS, RUN)
    return str(name) in shipped_models() or any((Path(name) / part).exists() for part in parts)


def _holds_a_model(path: Path) -> bool:
    """Whether a directory named like a bundled model holds a model: `en-de` may hold text."""
    return any((path / part).exists() for part in (MANIFEST, CHECKPOINTS, RUN))


def shipped_models() -> dict[str, Path]:
    """The models that have a name: those in the directories of `SHELVES`, and the bundled ones.

    `DEFAULT` comes first. A server without --model serves all of them, and the first one answers
    requests that do not specify languages.
    """
    own = [Path(place) for place in os.environ.get(SHELVES, "").split(os.pathsep) if place]
    found: dict[str, Path] = {}
    for shelf in (*own, SHELF):
        for manifest in sorted(shelf.glob(f"*/{MANIFEST}")):
            found.setdefault(manifest.parent.name, manifest.parent)
    return {name: found[name] for name in sorted(found, key=lambda name: name != DEFAULT)}


def _default(shipped: dict[str, Path]) -> Path:
    if DEFAULT in shipped:
        return shipped[DEFAULT]
    if len(shipped) == 1:
        return next(iter(shipped.values()))
    if shipped:
        raise ConfigError(
            "no model given: set ", Argument("model"), f" to one of {', '.join(shipped)}"
        )
    raise ConfigError(
        "no model given, and this installation has no bundled models: set ", Argument("model"),
        " to the directory of a model, such as the output of `transept train`",
    )  # fmt: skip


def model_of(path: Path) -> Path:
    """The model to use from a run: newest average, else best checkpoint, else newest checkpoint.

    The path itself if it is not a run.
    """
    if not (path / CHECKPOINTS).is_dir():
        return path
    averages = sorted(path.glob("average-*"), key=_age)
    if averages:
        return averages[-1]
    newest = Checkpoints(path / CHECKPOINTS).newest()
    if newest is None:
        raise CheckpointError(f"{path}: has no complete checkpoint yet; train it first")
    best = newest.state()["best_step"]
    there = best is not None and Checkpoints(path / CHECKPOINTS).path(best).exists()
    return Checkpoints(path / CHECKPOINTS).path(best) if there else newest.directory


def _warn_if_older(found: Path, run: Path) -> None:
    """Warn if the run has regular checkpoints newer than the average that is used.

    Other checkpoints do not count: they are never averaged.
    """
    checkpoints = Checkpoints(run / CHECKPOINTS)
    newest, step = max(checkpoints.regular_steps(), default=0), _age(found)[0]
    if found.parent == run and 0 < step < newest:
        _warn_once(
            f"using {found}, an average up to step {step:,}, but the run has reached step "
            f"{newest:,}. Average it again, or use {checkpoints.path(newest)}"
        )


@cache
def _warn_once(message: str) -> None:
    """Log a warning only once: a command may look up its model several times."""
    log.warning("%s", message)


def _age(average: Path) -> tuple[int, float]:
    """A sort key: the last step of an average (0 if unknown), then its modification time."""
    try:
        step = int(read_about(average).get("step", 0))
    except CheckpointError:
        step = 0
    return step, average.stat().st_mtime
