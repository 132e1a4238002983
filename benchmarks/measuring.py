"""Shared code of all benchmarks: arguments, measurements, and the record of results."""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from transept.apps.recipes.records import commit


def parser_of(doc: str, quick: str | None = None) -> argparse.ArgumentParser:
    """The common arguments, with `--quick` if a help text for it is given."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the record here")
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def seconds(
    work: Callable[[], object], rounds: int, wait: Callable[[], object] = lambda: None
) -> list[float]:
    """Wall time of each round, after a warm-up round; `wait` waits for the device."""
    times = []
    for _ in range(rounds + 1):
        wait()
        start = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - start)
    return times[1:]


@dataclass(frozen=True)
class Row:
    """The result of one system for one kind of work; low and high are the quartiles."""

    work: str
    system: str
    value: float
    unit: str
    low: float
    high: float

    @classmethod
    def of(cls, work: str, system: str, values: Sequence[float], unit: str) -> "Row":
        """The median and quartiles of repeated measurements."""
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(work, system, middle, unit, low, high)

    @classmethod
    def once(cls, work: str, system: str, value: float, unit: str) -> "Row":
        """A value that was measured once, or is constant."""
        return cls(work, system, value, unit, value, value)


@dataclass(frozen=True)
class Goal:
    """A goal and the measured value."""

    goal: str
    value: float
    target: float
    met: bool

    @classmethod
    def at_least(cls, goal: str, value: float, target: float) -> "Goal":
        """A goal that is met if the value is at least `target`."""
        return cls(goal, value, target, value >= target)

    @classmethod
    def below(cls, goal: str, value: float, target: float) -> "Goal":
        """A goal that is met if the value is below `target`."""
        return cls(goal, value, target, value < target)


def report(
    name: str,
    rows: Sequence[Row],
    goals: Sequence[Goal],
    packages: Sequence[str],
    file: Path | None,
    device: str | None = None,
) -> None:
    """Print the results, and write them as JSON if a file is given.

    `device` is the measured device, if that is not the CPU.
    """
    for row in rows:
        spread = f"[{row.low:,.4g} … {row.high:,.4g}]"
        print(f"{row.work:30} {row.system:34} {row.value:12,.4g} {row.unit:24} {spread}")
    for goal in goals:
        print(f"{'met' if goal.met else 'MISSED':7} {goal.goal}: {goal.value:.3f} ({goal.target})")
    if file is not None:
        write_record(name, rows, goals, packages, file, device)


def write_record(
    name: str,
    rows: Sequence[Row],
    goals: Sequence[Goal],
    packages: Sequence[str],
    file: Path,
    device: str | None = None,
) -> None:
    """Write the results as JSON, with the commit, the command and the machine."""
    record = {
        "name": name,
        # A machine may have only the files, without the repository.
        "commit": os.environ.get("TRANSEPT_COMMIT") or commit(),
        "command": " ".join(["python", *sys.argv]),
        "machine": f"{device or platform.machine()}, {os.cpu_count()} cores",
        "versions": _versions(packages),
        "rows": [asdict(row) for row in rows],
        "goals": [asdict(goal) for goal in goals],
    }
    file.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def print_across(rows: Sequence[Row]) -> None:
    """Print a table with one line per work and one column per system."""
    systems = list(dict.fromkeys(row.system for row in rows))
    found = {(row.work, row.unit, row.system): f"{row.value:,.4g}" for row in rows}
    widths = [max(len(system), 9) for system in systems]
    first = 2 + max(len(row.work) for row in rows)
    heads = "  ".join(f"{name:>{width}}" for name, width in zip(systems, widths, strict=True))
    print(f"{'':{first}}{heads}")
    for work, unit in dict.fromkeys((row.work, row.unit) for row in rows):
        values = (found.get((work, unit, system), "") for system in systems)
        cells = (f"{value:>{width}}" for value, width in zip(values, widths, strict=True))
        print(f"{work:{first}}{'  '.join(cells)}  {unit}")


def _versions(packages: Sequence[str]) -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    return versions
