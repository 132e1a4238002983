"""Observers of a run: the metrics log, and views of it.

Each line of `metrics.jsonl` is an object with a `kind`:

    start       the run starts or resumes: machine, device, step
    step        values of one step (not averaged; null if not finite), the speed since the last
                such line
    validation  loss and perplexity on the development set
    quality     BLEU and chrF on the development set, and sample translations
    checkpoint  a checkpoint was written
    warning     a message for the user
    end         why the run stopped
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from transept.errors import ConfigError, TranseptError
from transept.runtime.storage import write_file

Line = Mapping[str, Any]
METRICS = "metrics.jsonl"


@runtime_checkable
class Observer(Protocol):
    """Receives the log lines of a run."""

    def observe(self, line: Line) -> None:
        """Process one line."""

    def close(self) -> None:
        """Release resources; called after the last line."""


class MetricsLog:
    """`metrics.jsonl`: the record of a run."""

    def __init__(self, path: Path, *, resume_from: int) -> None:
        """Open the log. Lines of steps after `resume_from` are removed."""
        self._path = path
        with self._reporting_errors():
            kept = [line for line in read_metrics(path) if line.get("step", 0) <= resume_from]
            write_file(path, b"".join(map(_to_json, kept)))
            self._file = path.open("ab", buffering=0)

    def observe(self, line: Line) -> None:
        """Append a line, completely or not at all."""
        size = os.fstat(self._file.fileno()).st_size
        rest = _to_json(line)
        with self._reporting_errors():
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError:
                self._file.truncate(size)
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TranseptError(
                f"{self._path}: the log cannot be written ({error.strerror}), so training stops. "
                "Its checkpoints are intact. Free space or check the disk, then run the same "
                "command to resume from the newest checkpoint"
            ) from error


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a log. Invalid lines, which a crash may leave, are skipped."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_bytes().splitlines():
        with suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict) and "kind" in line and isinstance(line.get("step", 0), int):
                lines.append(line)
    return lines


def _to_json(line: Line) -> bytes:
    """A line of JSON, with null for values that are not finite, such as a skipped step's loss."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in line.items()
    }
    return f"{json.dumps(finite)}\n".encode()


class TensorBoard:
    """Writes the metrics for TensorBoard; requires the extra `tb`."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError("TensorBoard is not installed: pip install 'transept[tb]'") from error
        self._writer: Any = SummaryWriter(str(directory))

    def observe(self, line: Line) -> None:
        """Write the numbers of steps, validations and quality checks."""
        if line["kind"] not in ("step", "validation", "quality"):
            return
        for name, value in line.items():
            if isinstance(value, int | float) and name != "step":
                self._writer.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def close(self) -> None:
        """Flush and close the writer."""
        self._writer.close()
