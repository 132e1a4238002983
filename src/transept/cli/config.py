"""`transept config`: look at configurations."""

import sys
from pathlib import Path

from transept import config
from transept.experiment import Experiment


def show(file: Path, /, *overrides: str) -> None:
    """Print a config with everything it extends, overrides and defaults filled in.

    Args:
        file: A TOML file of an experiment, such as configs/base.toml.
        overrides: Changes laid over it, each of the form key=value: `model.n_heads=16`.
    """
    sys.stdout.write(config.dump(config.load(Experiment, file, overrides)))
