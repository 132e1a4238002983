"""Where models are: one meaning of `--model` for every command."""

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
"""Where shipped models lie, each in a directory of its name."""
SHELVES = "TRANSEPT_MODELS"
"""The environment variable that names further directories of models, which come first."""
RUN = "run"
"""Where the run lies in the directory of a demo or a recipe."""
DEFAULT = "en-de"
"""The shipped model that is used where none is named."""
log = logging.getLogger(__name__)


def find_model(name: Path | str | None = None) -> Path:
    """The directory of the model that a name or path on the command line means, or the default."""
    shipped = shipped_models()
    if name is None:
        return _default(shipped)
    path = Path(name)
    if path.is_dir() and (str(name) not in shipped or _holds_a_model(path)):
        is_work = (path / RUN / CHECKPOINTS).is_dir() and not (path / MANIFEST).exists()
        run = path / RUN if is_work else path
        found = model_of(run)
        _note_if_older(found, run)
        return found
    if str(name) in shipped:
        return shipped[str(name)]
    if path.exists():
        raise CheckpointError(f"{path}: is a file; a model is a directory: give its path")
    # No similar name is suggested: whoever wrote en-fr did not mean en-de.
    known = f"shipped are: {', '.join(shipped)}" if shipped else "check the path"
    raise CheckpointError(f"{path}: there is no such directory, nor a shipped model; {known}")


def find_tokenizer(name: Path | str, which: str = TOKENIZER) -> Path:
    """The directory of the tokenizer that a name or path on the command line means.

    A model means its tokenizer, or the one of its target side if `which` is `TARGET_TOKENIZER`
    and the two sides have different ones.
    """
    path = Path(name)
    if not is_model(name):
        return path
    own = tokenizers_in(find_model(name))
    return own.get(which) or own.get(TOKENIZER) or path


def is_model(name: Path | str) -> bool:
    """Whether this is the name of a shipped model, or the directory of a model or a run.

    A corpus has a manifest too, but neither a config nor checkpoints.
    """
    parts = (CONFIG, CHECKPOINTS, RUN)
    return str(name) in shipped_models() or any((Path(name) / part).exists() for part in parts)


def _holds_a_model(path: Path) -> bool:
    """Whether a directory with the name of a shipped model holds one: `en-de` may also be text."""
    return any((path / part).exists() for part in (MANIFEST, CHECKPOINTS, RUN))


def shipped_models() -> dict[str, Path]:
    """The models that have a name: those in the user's own `SHELVES`, and the shipped ones.

    `DEFAULT` comes first: a server that is given no model serves all of them, and its first one
    answers requests that name no languages.
    """
    own = [Path(place) for place in os.environ.get(SHELVES, "").split(os.pathsep) if place]
    found: dict[str, Path] = {}
    for shelf in (*own, SHELF):
        for manifest in sorted(shelf.glob(f"*/{MANIFEST}")):
            found.setdefault(manifest.parent.name, manifest.parent)
    return {name: found[name] for name in sorted(found, key=lambda name: name != DEFAULT)}


def _default(shipped: dict[str, Path]) -> Path:
    """The model that is meant where none is named."""
    if DEFAULT in shipped:
        return shipped[DEFAULT]
    if len(shipped) == 1:
        return next(iter(shipped.values()))
    if shipped:
        raise ConfigError(
            "no model was named: give ", Argument("model"), f" one of {', '.join(shipped)}"
        )
    raise ConfigError(
        "no model was named, and none is shipped with this transept: give ", Argument("model"),
        " the directory of one, such as `transept train` makes",
    )  # fmt: skip


def model_of(path: Path) -> Path:
    """A run's newest average, else its best checkpoint, else its newest; a model's own path."""
    if not (path / CHECKPOINTS).is_dir():
        return path
    averages = sorted(path.glob("average-*"), key=_age)
    if averages:
        return averages[-1]
    newest = Checkpoints(path / CHECKPOINTS).newest()
    if newest is None:
        raise CheckpointError(f"{path}: has no whole checkpoint yet; train it first")
    best = newest.state()["best_step"]
    there = best is not None and Checkpoints(path / CHECKPOINTS).path(best).exists()
    return Checkpoints(path / CHECKPOINTS).path(best) if there else newest.directory


def _note_if_older(found: Path, run: Path) -> None:
    """Warn if `transept average` would include a later step than the average that is used.

    Checkpoints that are not regular do not count: they are never averaged.
    """
    checkpoints = Checkpoints(run / CHECKPOINTS)
    newest, step = max(checkpoints.regular_steps(), default=0), _age(found)[0]
    if found.parent == run and 0 < step < newest:
        _note(
            f"{found} is used, which goes up to step {step:,}; the run has gone on to step "
            f"{newest:,}. Average it again, or name {checkpoints.path(newest)}"
        )


@cache
def _note(message: str) -> None:
    """Warn once only: a command may look for its model several times."""
    log.warning("%s", message)


def _age(average: Path) -> tuple[int, float]:
    """The last step of an average, 0 if unknown; only then the time, as a clock may be wrong."""
    try:
        step = int(read_about(average).get("step", 0))
    except CheckpointError:
        step = 0
    return step, average.stat().st_mtime
