"""Who watches a run: the log that is the truth, and views of it.

Each line of `metrics.jsonl` is an object with a `kind`:

    start       the run begins or goes on: where, on what, from which step
    step        one step's own values (no averages), the pace since the last such line
    validation  loss and perplexity on the development set
    checkpoint  a checkpoint was written
    warning     something a person should know
    end         why the run stopped
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from transept.errors import ConfigError

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
        kept = [line for line in read_metrics(path) if line.get("step", 0) <= resume_from]
        part = path.with_name(f".{path.name}.part")
        part.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        part.replace(path)
        self._file = path.open("a", encoding="utf-8")

    def observe(self, line: Line) -> None:
        """Append a line."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a log. A last line that a crash cut short is left out."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_bytes().splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
    return lines


class TensorBoard:
    """The same numbers for TensorBoard; needs the extra `tb`."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ConfigError(
                "--tensorboard needs a package that is not installed: pip install 'transept[tb]'"
            ) from error
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
