"""Bulk work in numbered parts, divided among ranks; finished parts are skipped.

A part is a file next to the output, written atomically. Interrupted work can therefore resume on
any number of ranks. When all parts exist, rank 0 joins them in order.
"""

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transept.errors import ConfigError
from transept.runtime.storage import make_directory, replacing, write_file

SETTINGS = "settings.json"
PAUSE = 0.2
RANK_VARIABLES = {"RANK": "0", "WORLD_SIZE": "1"}
"""The environment variables torchrun sets for each rank, and their values without torchrun."""


@dataclass(slots=True)
class Parts:
    """The parts of one output. This process produces every `size`-th of them."""

    output: Path
    rank: int = 0
    size: int = 1
    _done: frozenset[Path] = frozenset()

    @classmethod
    def of(cls, output: Path) -> "Parts":
        """Return this process's parts by torchrun's variables; without torchrun, all parts."""
        rank, size = (
            int(os.environ.get(name, default)) for name, default in RANK_VARIABLES.items()
        )
        return cls(output, rank, size)

    @property
    def directory(self) -> Path:
        """The directory of the parts until they are joined."""
        return self.output.with_name(f"{self.output.name}.parts")

    def begin(self, settings: Mapping[str, Any]) -> bool:
        """Create the directory, or resume from existing parts; return False if all is done.

        Parts are listed only once, here: rank 0 may join and remove them while this rank starts.
        """
        if self._is_joined():
            return False
        make_directory(self.directory)
        self._agree_on(json.dumps(settings, indent=2, sort_keys=True, default=str))
        self._done = frozenset(self.directory.glob("part-*"))
        if self._is_joined():  # joined meanwhile, so some parts may already have been removed
            shutil.rmtree(self.directory, ignore_errors=True)
            return False
        return True

    def _is_joined(self) -> bool:
        """Whether the output already exists, for a rank that starts late or was restarted."""
        if not self.output.exists():
            return False
        again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        if self.rank == 0 and not again:
            raise ConfigError(f"{self.output}: already exists; remove it, or choose another")
        return True

    def _agree_on(self, settings: str) -> None:
        """Reject parts that were made with other settings."""
        path = self.directory / SETTINGS
        try:
            others = path.read_text(encoding="utf-8") != settings
        except FileNotFoundError:
            others = False
        if others:
            raise ConfigError(
                f"{self.directory}: holds parts made with other options or from other text; "
                f"use the options in {path}, or remove the directory"
            )
        if self.rank == 0:
            write_file(path, settings.encode())

    def is_mine(self, number: int) -> bool:
        """Whether this process must produce this part."""
        return number % self.size == self.rank and self._path(number) not in self._done

    def put(self, number: int, content: bytes) -> None:
        """Store a finished part."""
        write_file(self._path(number), content)

    def join(self, n: int) -> None:
        """On rank 0, wait for all parts and join them into the output. No-op on other ranks."""
        if self.rank != 0:
            return
        with replacing(self.output) as file:
            for number in range(n):
                while not self._path(number).exists():
                    time.sleep(PAUSE)
                with self._path(number).open("rb") as part:
                    shutil.copyfileobj(part, file)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.directory / f"part-{number:08d}"
