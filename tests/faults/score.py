"""Letting faults happen on all cores, and counting what survived."""

import json
import os
import platform
import random
import subprocess
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from tests.faults.children import BrokenError, die_with_parent
from tests.faults.fault import Fault, Form
from tests.faults.laboratory import Bench, Laboratory


@dataclass(slots=True)
class Tally:
    """What became of one kind of fault."""

    name: str
    does: str
    promise: str
    tried: int = 0
    survived: int = 0
    seconds: float = 0.0
    skipped: str | None = None
    broken: dict[int, str] = field(default_factory=dict)
    """What went wrong, by the number of the case."""

    @property
    def good(self) -> bool:
        return not self.broken


def try_out(lab: Laboratory, fault: Fault, seed: int, form: Form, case: int | None) -> Tally:
    """Let a fault happen in each of its cases, or in one of them."""
    tally = Tally(fault.name, fault.does, fault.promise)
    begin = time.monotonic()
    tally.skipped = fault.unavailable()
    if tally.skipped is None:
        chance = random.Random(f"{seed}/{fault.name}")
        cases = fault.cases(lab, chance, form) if case is None else [case]
        tally.broken = _on_all_cores(lab, fault, seed, cases)
        tally.tried = len(cases)
        tally.survived = tally.tried - len(tally.broken)
    tally.seconds = time.monotonic() - begin
    return tally


def as_json(tallies: Sequence[Tally], seed: int) -> dict[str, Any]:
    """The score for whoever reads it by machine, and what it was made on."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return {
        "name": "faults",
        "commit": commit.stdout.strip(),
        "seed": seed,
        "machine": f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}",
        "versions": {"python": platform.python_version(), "torch": version("torch")},
        "faults": [asdict(tally) for tally in tallies],
    }


def _on_all_cores(lab: Laboratory, fault: Fault, seed: int, cases: Sequence[int]) -> dict[int, str]:
    """The cases that broke. A lane is a fork that takes every n-th case."""
    lanes = []
    for lane in range(min(lab.jobs, len(cases))):
        hears, tells = os.pipe()
        pid = os.fork()
        if pid == 0:
            die_with_parent()
            os.close(hears)
            broken = {
                n: what for n in cases[lane :: lab.jobs] if (what := _try(lab, fault, seed, n))
            }
            with os.fdopen(tells, "w") as pipe:
                json.dump(broken, pipe)
            os._exit(0)
        os.close(tells)
        lanes.append((pid, hears))
    found: dict[int, str] = {}
    for pid, hears in lanes:
        with os.fdopen(hears) as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        found |= {int(n): what for n, what in json.loads(said).items()}
    return dict(sorted(found.items()))


def _try(lab: Laboratory, fault: Fault, seed: int, case: int) -> str | None:
    """None if it survived, else what went wrong."""
    chance = random.Random(f"{seed}/{fault.name}/{case}")
    with lab.case(f"{fault.name}-{case}") as directory:
        try:
            fault.happen(Bench(lab, case, chance, directory))
        except BrokenError as error:
            return str(error)
        except Exception:
            return traceback.format_exc()
    return None
