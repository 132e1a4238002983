"""The record of a stage: its inputs, results, code version, machine and duration."""

import hashlib
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from transept.errors import DataError
from transept.runtime.device import describe_devices
from transept.runtime.storage import make_directory, write_json
from transept.version import __version__

PACKAGE: Final = Path(__file__).parents[2]

Table = dict[str, Any]


def provenance() -> Table:
    """The code, command and machine that computed a result."""
    import torch

    return {
        "transept": __version__,
        "commit": commit(),
        "command": command(),
        "source": source_hash(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "devices": describe_devices(),
    }


def command() -> str:
    """The command line of this process, with absolute paths shortened to file names."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv]
    program = ["transept"] if words[0] in ("transept", "__main__.py") else ["python", words[0]]
    return shlex.join([*program, *words[1:]])


@cache
def source_hash() -> str:
    """The SHA-256 of the package's code. It is the same for a commit on every machine."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@cache
def commit() -> str | None:
    """The commit of the code. None outside a git repository."""
    words = ["git", "-C", str(PACKAGE), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a work directory: a JSON file per stage, and one for the minutes."""

    directory: Path

    def read(self, stage: str) -> Table | None:
        """Read the record of a stage. None if it does not exist."""
        path = self._path(stage)
        try:
            table: Table = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: is damaged ({error}); remove it to rerun it") from error
        return table

    def write(self, stage: str, inputs: Table, results: Table, seconds: float | None) -> None:
        """Record a stage.

        Args:
            stage: The name of the stage.
            inputs: Everything that the results depend on.
            results: The results.
            seconds: The duration. None if the results contain it.
        """
        finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        timing = {} if seconds is None else {"seconds": seconds, "finished": finished}
        record = {"stage": stage, "inputs": inputs, "results": results, **timing}
        self.keep(stage, {**record, "by": provenance()})

    def keep(self, stage: str, record: Table) -> None:
        """Store a record atomically."""
        make_directory(self.directory)
        write_json(self._path(stage), record)

    def _path(self, stage: str) -> Path:
        return self.directory / f"{stage}.json"
