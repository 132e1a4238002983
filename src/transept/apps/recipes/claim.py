"""A directory belongs to one plan for as long as it lives. No torch here."""

from collections.abc import Container
from pathlib import Path
from typing import Any

from transept import config
from transept.errors import Argument, ConfigError
from transept.runtime.storage import make_directory, part_of, write_file


def claim(
    directory: Path, file: str, plan: Any, *, kind: str, argument: str, besides: Container[str] = ()
) -> None:
    """Write a plan down in its directory; or refuse to mix it with another that was begun there.

    Args:
        directory: Where it is carried out.
        file: The plan's own file in it.
        plan: A config.
        kind: What to call it in messages: `demo`.
        argument: The argument that chooses another directory: `output`.
        besides: Keys that may differ from what was written down.
    """
    path = directory / file
    if path.exists():
        changes = config.differences(config.load(type(plan), path), plan, besides)
        if changes:
            listed = "\n  ".join(changes)
            raise ConfigError(
                f"{directory}: holds a {kind} that began with other settings:\n  {listed}\n"
                "Choose another ", Argument(argument),
            )  # fmt: skip
    elif directory.exists() and any(each != part_of(path) for each in directory.iterdir()):
        raise ConfigError(
            f"{directory}: is not empty and not a {kind}; choose another ", Argument(argument)
        )
    else:
        make_directory(directory)
        write_file(path, config.dump(plan).encode())
