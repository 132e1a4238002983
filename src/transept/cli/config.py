"""The config file that a command is given."""

from collections.abc import Sequence
from pathlib import Path

from transept import config
from transept.errors import ConfigError
from transept.experiment import Experiment
from transept.runtime.interrupt import import_torch


def load_experiment(file: Path, overrides: Sequence[str]) -> Experiment:
    """The experiment of a file. Recipes and models are refused: other commands use them."""
    if file.is_dir() or not file.exists():
        _refuse_model(file)
    if not file.exists():
        raise ConfigError(
            f"{file}: cannot be read: there is no such file. If it is the name of a recipe, "
            f"`transept recipe run {file}` runs it"
        )
    if "experiment" in config.keys(file):
        raise ConfigError(
            f"{file}: is a recipe; `transept recipe run {file}` runs it, "
            f"`transept recipe show {file}` prints it"
        )
    return config.load(Experiment, file, overrides)


def _refuse_model(name: Path) -> None:
    """Refuse the name or directory of a model where a config file is needed."""
    import_torch()
    from transept.shelf import is_model

    if is_model(name):
        raise ConfigError(
            f"{name}: is a model, not a config file; `transept train CONFIG --init {name}` "
            f"fine-tunes it, `transept info --model {name}` describes it"
        )
