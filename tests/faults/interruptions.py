"""Signals to end or pause, a second start, clocks that jump, gradients that are no numbers."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults.children import Child, demand, transept
from tests.faults.fault import Fault, times
from tests.faults.laboratory import LAST_STEP, RUN, Bench

STOPPED = 75
YEARS = 30 * 365 * 24 * 3600.0


def _after_a_step(bench: Bench, *overrides: str) -> Child:
    """A run that has just made some step before its last."""
    step = bench.chance.randint(1, LAST_STEP - 2)
    hears, tells = os.pipe()

    def note(line: dict[str, Any]) -> None:
        if line["kind"] == "step" and line["step"] == step:
            os.write(tells, b"!")

    child = bench.child(lambda: bench.lab.train_watched(note, *overrides))
    os.close(tells)
    os.read(hears, 1)
    os.close(hears)
    return child


def _asked_to_stop(number: signal.Signals) -> Callable[[Bench], None]:
    def happen(bench: Bench) -> None:
        child = _after_a_step(bench)
        time.sleep(bench.chance.uniform(0, 0.01))
        child.signal(number)
        child.wait().demand(STOPPED)
        bench.demand_recovery()

    return happen


def _asked_twice(bench: Bench) -> None:
    """The second signal is obeyed at once, even in the middle of a save."""
    child = _after_a_step(bench)
    child.signal(signal.SIGTERM)
    time.sleep(bench.chance.uniform(0, 0.02))
    child.signal(signal.SIGTERM)
    child.wait()  # in whichever way
    bench.demand_recovery()


def _paused(bench: Bench) -> None:
    child = _after_a_step(bench)
    child.signal(signal.SIGSTOP)
    time.sleep(bench.chance.uniform(0.05, 0.4))
    child.signal(signal.SIGCONT)
    child.wait().demand(0)
    bench.demand_same_run()


def _started_twice(bench: Bench) -> None:
    """The second is refused and leaves no trace; in every other case the first is killed then."""
    child = _after_a_step(bench)
    child.signal(signal.SIGSTOP)
    bench.train().demand(1, RUN, f"process {child.pid} on ", "stop it, or choose another")
    if bench.case % 2:
        child.signal(signal.SIGKILL)
        child.wait()
        bench.demand_recovery()
    else:
        child.signal(signal.SIGCONT)
        child.wait().demand(0)
        bench.demand_same_run()


# --- the clock -------------------------------------------------------------------------------


def _let_clock_jump(chance: random.Random) -> None:
    """From here on, every look at the time of day gives another one."""
    real = time.time

    def jumping() -> float:
        return max(0.0, real() + chance.uniform(-YEARS, YEARS))

    time.time = jumping
    time.time_ns = lambda: int(jumping() * 1e9)


def _clock_jumps(bench: Bench) -> None:
    """Before, during and after a stop; and the files that are there have times of any year."""

    def train() -> int:
        _let_clock_jump(bench.chance)
        return transept(*bench.lab.train_words)

    bench.begin_half()
    for path in (bench.directory / RUN).rglob("*"):
        moment = bench.chance.uniform(0, 4e9)
        os.utime(path, (moment, moment))
    bench.child(train).wait().demand(0)
    bench.demand_same_run()


def _clock_jumps_in_budget(bench: Bench) -> None:
    """`--minutes` counts minutes that have passed, whatever the time of day is said to be."""

    def train() -> int:
        _let_clock_jump(bench.chance)
        return transept(*bench.lab.train_words, "training.max_steps=100000", "--minutes", "0.01")

    begin = time.monotonic()
    bench.child(train).wait().demand(STOPPED, "out of time")
    passed = time.monotonic() - begin
    # An upper limit would depend on the machine. A child that hangs is ended by its alarm.
    demand(passed >= 0.6, f"0.6 seconds took {passed:.1f}")


# --- gradients -------------------------------------------------------------------------------


def _poison(steps: set[int]) -> None:
    """At these steps some gradient is not a number."""
    from transept.training.update import Update

    honest = Update._backward

    def poisoned(self: Update, step: int, *more: Any, **named: Any) -> Any:
        sums = honest(self, step, *more, **named)
        if step in steps:
            parameter = next(iter(self.model.parameters()))
            assert parameter.grad is not None
            parameter.grad.view(-1)[step] = float("nan")
        return sums

    Update._backward = poisoned  # type: ignore[method-assign]


def _not_a_number(bench: Bench) -> None:
    """Such steps are left out, and counted, also by a run that is killed among them."""
    steps = set(bench.chance.sample(range(1, LAST_STEP + 1), bench.chance.randint(1, 4)))

    def train() -> int:
        _poison(steps)
        return transept(*bench.lab.train_words)

    bench.child(train).wait().demand(0)
    straight = bench.directory / "straight"
    (bench.directory / RUN).rename(straight)
    child = bench.child(train)
    time.sleep(bench.chance.uniform(0.3, 1.0) * bench.lab.seconds)
    child.signal(signal.SIGKILL)
    child.wait()
    bench.child(train).wait().demand(0)
    bench.demand_same_run(straight)
    _demand_numbers(straight, len(steps))


def _demand_numbers(run: Path, suppressed: int) -> None:
    from transept.checkpoint import CHECKPOINTS, Checkpoints

    newest = Checkpoints(run / CHECKPOINTS).newest()
    assert newest is not None
    counted = newest.state()["suppressed"]
    demand(counted == suppressed, f"{counted} steps were counted as left out, not {suppressed}")
    _demand_finite(run)


def _demand_finite(run: Path) -> None:
    from transept.checkpoint import CHECKPOINTS, Checkpoints

    newest = Checkpoints(run / CHECKPOINTS).newest()
    assert newest is not None
    for name, tensor in (newest.weights() | newest.training()).items():
        demand(tensor.isfinite().all(), f"{name} is not finite")


def _never_a_number(bench: Bench) -> None:
    """Where NaN gradients in every step, the run ends and says so; the weights are spared."""

    def train() -> int:
        _poison(set(range(4, LAST_STEP + 1)))
        return transept(*bench.lab.train_words)

    bench.child(train).wait().demand(1, "5 steps in a row were not finite numbers")
    _demand_finite(bench.directory / RUN)


FAULTS = [
    Fault(
        name=name,
        does=f"{name} at a random moment",
        promise="saved, exit code 75; it resumes, bit for bit",
        happen=_asked_to_stop(signal.Signals[name]),
        cases=times(1, 20),
    )
    for name in ("SIGTERM", "SIGINT", "SIGUSR1")
]
FAULTS += [
    Fault(
        name="SIGTERM-twice",
        does="SIGTERM twice, the second at once or in the save",
        promise="it resumes, bit for bit",
        happen=_asked_twice,
        cases=times(1, 20),
    ),
    Fault(
        name="SIGSTOP",
        does="SIGSTOP, and SIGCONT after a while",
        promise="it ends like an undisturbed run, bit for bit",
        happen=_paused,
        cases=times(1, 20),
    ),
    Fault(
        name="twice",
        does="the same command again while the run is active, and kill -9",
        promise="refused by name; the run ends like an undisturbed one, bit for bit",
        happen=_started_twice,
        cases=times(2, 20),
    ),
    Fault(
        name="clock",
        does="the time of day jumps by years, files are from any year",
        promise="it ends like an undisturbed run, bit for bit",
        happen=_clock_jumps,
        cases=times(1, 20),
    ),
    Fault(
        name="clock-budget",
        does="the time of day jumps under --minutes",
        promise="the minutes are those that have passed",
        happen=_clock_jumps_in_budget,
        cases=times(1, 5),
    ),
    Fault(
        name="nan",
        does="NaN gradients in some steps, and kill -9",
        promise="skipped and counted; killed or not, the same bits",
        happen=_not_a_number,
        cases=times(1, 20),
    ),
    Fault(
        name="nan-for-good",
        does="NaN gradients in every step",
        promise="the run ends and says so; weights stay finite",
        happen=_never_a_number,
        cases=times(1, 3),
    ),
]
