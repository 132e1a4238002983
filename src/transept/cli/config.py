"""`transept config`: look at configurations."""

import sys
from collections.abc import Sequence
from pathlib import Path

from transept import config
from transept.errors import ConfigError
from transept.experiment import Experiment


def show(file: Path, /, *overrides: str) -> None:
    """Print a config, with what it extends, overrides and defaults.

    Args:
        file: A TOML file of an experiment, such as configs/base.toml.
        overrides: Changes to it, each of the form key=value: `model.n_heads=16`.
    """
    sys.stdout.write(config.dump(load_experiment(file, overrides)))


def load_experiment(file: Path, overrides: Sequence[str]) -> Experiment:
    """The experiment of a file. A recipe is refused: it has commands of its own."""
    from transept.recipes import recipe

    if str(file) in recipe.names() or "experiment" in config.keys(file):
        raise ConfigError(
            f"{file}: is a recipe; `transept recipe run {file}` runs it, "
            f"`transept recipe show {file}` prints it"
        )
    return config.load(Experiment, file, overrides)
