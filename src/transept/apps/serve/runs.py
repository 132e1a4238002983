"""Training runs that a dashboard follows. They are only read, and fixed when the server starts."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from transept import config
from transept.apps.serve import messages as m
from transept.checkpoint import CONFIG
from transept.errors import ConfigError, Problem, TranseptError
from transept.experiment import Experiment
from transept.training.observers import METRICS

MOST_LINES = 2_000
"""The maximum number of lines in a response."""
MOST_BYTES = 1_000_000
"""The maximum size of the lines in a response. One line is always returned."""


class FollowedRun:
    """The log of a training run, which grows."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name, self._directory = name, directory
        self._file: tuple[int, int] = (0, 0)
        self._starts = [0]
        """Where each line starts, and where the next one will."""

    def summary(self) -> str:
        """The size of the network, from the config of the run. Empty if there is none yet."""
        try:
            model = config.load(Experiment, self._directory / CONFIG).model
        except (TranseptError, OSError):
            return ""
        depth = f"{model.n_layers}"
        if model.decoder_depth != model.n_layers:
            depth += f" + {model.decoder_depth}"
        return (
            f"{depth} layers, d_model {model.d_model}, d_ff {model.d_ff}, "
            f"{model.n_heads} heads, vocabulary {model.vocab_size:,}, dropout {model.dropout:g}"
        )

    def lines(self, first: int) -> m.RunLines:
        """The complete lines from a number on, counted from 0, as far as a response may hold.

        A run that resumes from a checkpoint rewrites its log. If the log is shorter than before,
        the lines are counted again from 0.
        """
        try:
            with (self._directory / METRICS).open("rb") as file:
                self._index(file)
                n_lines = len(self._starts) - 1
                first = first if first <= n_lines else 0
                end = min(n_lines, first + MOST_LINES)
                while end > first + 1 and self._starts[end] - self._starts[first] > MOST_BYTES:
                    end -= 1
                file.seek(self._starts[first])
                data = file.read(self._starts[end] - self._starts[first])
        except FileNotFoundError:  # the run has not started
            return m.RunLines(0, 0, [])
        return m.RunLines(first, end, [*map(_parsed, data.splitlines())])

    def _index(self, file: BinaryIO) -> None:
        """Find the lines that were added since the last call."""
        found = os.fstat(file.fileno())
        same = (found.st_dev, found.st_ino)
        if same != self._file or found.st_size < self._starts[-1]:
            self._file, self._starts = same, [0]
        at = self._starts[-1]
        file.seek(at)
        for line in file:
            at += len(line)
            if line.endswith(b"\n"):
                self._starts.append(at)


def _parsed(line: bytes) -> dict[str, Any]:
    """A line. One that is damaged has no values."""
    with suppress(msgspec.DecodeError):
        values = msgspec.json.decode(line)
        if isinstance(values, dict):
            return values
    return {}


def open_runs(directories: Sequence[Path]) -> dict[str, FollowedRun]:
    """The runs by name: the name of the directory, or of the recipe that the run belongs to."""
    runs: dict[str, FollowedRun] = {}
    for given in directories:
        path = given.resolve()
        if not path.is_dir():
            raise ConfigError([Problem("run", f"{given}: is not a directory")])
        inner = path / "run"
        if inner.is_dir() and not (path / METRICS).exists():
            path = inner
        known = path.parent.name if path.name == "run" else path.name
        names = [known, *(f"{known}-{number}" for number in range(2, len(directories) + 1))]
        name = next(one for one in names if one not in runs)
        runs[name] = FollowedRun(name, path)
    return runs
