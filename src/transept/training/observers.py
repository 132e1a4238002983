"""Who watches a run: the log that is the truth, and views of it.

Each line of `metrics.jsonl` is an object with a `kind`:

    start       the run begins or goes on: where, on what, from which step
    step        one step's own values (no averages; null is no finite number), the pace since the
                last such line
    validation  loss and perplexity on the development set
    checkpoint  a checkpoint was written
    warning     something a person should know
    end         why the run stopped
"""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from transept.errors import ConfigError, TranseptError
from transept.runtime.storage import write_file

Line = Mapping[str, Any]


@runtime_checkable
class Observer(Protocol):
    """Anything that wants to know what happens."""

    def observe(self, line: Line) -> None:
        """Take note of one line."""

    def close(self) -> None:
        """Nothing more will come."""


class MetricsLog:
    """`metrics.jsonl`: the record of a run."""

    def __init__(self, path: Path, *, resume_from: int) -> None:
        """Open it for lines after step `resume_from`; what was logged of later steps is undone."""
        self._path = path
        with self._told_clearly():
            kept = [line for line in read_metrics(path) if line.get("step", 0) <= resume_from]
            write_file(path, b"".join(map(_written, kept)))
            self._file = path.open("ab", buffering=0)

    def observe(self, line: Line) -> None:
        """Append a line: all of it, or none."""
        size = self._file.tell()
        rest = _written(line)
        with self._told_clearly():
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
    def _told_clearly(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TranseptError(
                f"{self._path}: the log cannot be written ({error.strerror}), so training stops; "
                "its checkpoints are whole. Make room or see to the disk, and the same command "
                "goes on from the newest of them"
            ) from error


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a log. One that cannot be read, as a crash may leave it, is left out."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_bytes().splitlines():
        with suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict) and "kind" in line and isinstance(line.get("step", 0), int):
                lines.append(line)
    return lines


def _written(line: Line) -> bytes:
    """A line of JSON, which knows finite numbers only: a suppressed step's loss is null."""
    finite = {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in line.items()
    }
    return f"{json.dumps(finite)}\n".encode()


class TensorBoard:
    """The same numbers for TensorBoard; needs the extra `tb`."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError("TensorBoard is not installed: pip install 'transept[tb]'") from error
        self._writer: Any = SummaryWriter(str(directory))

    def observe(self, line: Line) -> None:
        """Pass on the numbers of steps and validations."""
        if line["kind"] not in ("step", "validation"):
            return
        for name, value in line.items():
            if isinstance(value, int | float) and name != "step":
                self._writer.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def close(self) -> None:
        """Flush what is buffered."""
        self._writer.close()
