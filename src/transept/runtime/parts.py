"""Bulk work in numbered parts: ranks share them out, and what is done is not done again.

A part is a file beside the output, there whole or not at all. So work goes on where it was
interrupted, on any number of ranks; when all parts are there, rank 0 joins them in order.
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
PLACE = {"RANK": "0", "WORLD_SIZE": "1"}
"""The variables in which torchrun says which rank this is, and their values without torchrun."""


@dataclass(slots=True)
class Parts:
    """The parts of one output, of which this process makes every `size`-th."""

    output: Path
    rank: int = 0
    size: int = 1
    _done: frozenset[Path] = frozenset()

    @classmethod
    def of(cls, output: Path) -> "Parts":
        """The parts of this process, by torchrun's variables; without torchrun, all parts."""
        rank, size = (int(os.environ.get(name, there)) for name, there in PLACE.items())
        return cls(output, rank, size)

    @property
    def directory(self) -> Path:
        """Where the parts lie until they are joined."""
        return self.output.with_name(f"{self.output.name}.parts")

    def begin(self, settings: Mapping[str, Any]) -> bool:
        """Make room, or take up what is there; False where nothing is left to do.

        Parts are looked for once, here: rank 0 may join and remove them while this rank starts.
        """
        if self._is_joined():
            return False
        make_directory(self.directory)
        self._agree_on(json.dumps(settings, indent=2, sort_keys=True, default=str))
        self._done = frozenset(self.directory.glob("part-*"))
        if self._is_joined():  # meanwhile, so that some parts may have been removed already
            shutil.rmtree(self.directory, ignore_errors=True)
            return False
        return True

    def _is_joined(self) -> bool:
        """Whether the output is there already, for a rank that begins late or was restarted."""
        if not self.output.exists():
            return False
        again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        if self.rank == 0 and not again:
            raise ConfigError(f"{self.output}: is there already; remove it, or choose another")
        return True

    def _agree_on(self, settings: str) -> None:
        """Refuse parts that were made with other settings."""
        path = self.directory / SETTINGS
        try:
            others = path.read_text(encoding="utf-8") != settings
        except FileNotFoundError:
            others = False
        if others:
            raise ConfigError(
                f"{self.directory}: holds parts that were made with other options, or of other "
                f"text; go on with those in {path}, or remove the directory"
            )
        if self.rank == 0:
            write_file(path, settings.encode())

    def is_mine(self, number: int) -> bool:
        """Whether this process is to make a part."""
        return number % self.size == self.rank and self._path(number) not in self._done

    def put(self, number: int, content: bytes) -> None:
        """Store a part that is done."""
        write_file(self._path(number), content)

    def join(self, n: int) -> None:
        """Rank 0 waits for all parts and makes the output of them; others have nothing to do."""
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
