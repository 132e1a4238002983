"""kill -9: at random moments, and at each system call; and the power cut at each of them."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults import tracing
from tests.faults.children import demand, transept
from tests.faults.fault import Cases, Fault, drawn, times
from tests.faults.laboratory import BEGUN, RUN, SAVE_EVERY, Bench, Laboratory

SAVE_SECONDS = 0.03
"""Somewhat more than a save takes."""


def _at_a_random_moment(bench: Bench) -> None:
    """Every other one is aimed at a save, where there is most to break; some hit twice."""
    kill = _kill_in_a_save if bench.case % 2 else _kill_anywhere
    for _ in range(2 if bench.case % 10 == 9 else 1):
        kill(bench)
    bench.demand_recovery()


def _kill_anywhere(bench: Bench) -> None:
    while True:  # until it hits: the run may be over before
        child = bench.child(lambda: transept(*bench.lab.train_words))
        time.sleep(bench.chance.uniform(0, bench.lab.seconds))
        child.signal(signal.SIGKILL)
        ended = child.wait()
        if ended.code == -signal.SIGKILL:
            return
        ended.demand(0)
        shutil.rmtree(bench.directory / RUN)


def _kill_in_a_save(bench: Bench) -> None:
    """The run itself tells when it has made a step after which it saves."""
    step = SAVE_EVERY * bench.chance.randint(1, 3)
    hears, tells = os.pipe()

    def note(line: dict[str, Any]) -> None:
        if line["kind"] == "step" and line["step"] >= step and line["step"] % SAVE_EVERY == 0:
            os.write(tells, b"!")

    child = bench.child(lambda: bench.lab.train_watched(note))
    os.close(tells)
    os.read(hears, 1)
    os.close(hears)
    time.sleep(bench.chance.uniform(0, SAVE_SECONDS))
    child.signal(signal.SIGKILL)
    ended = child.wait()
    demand(ended.code == -signal.SIGKILL, f"it ended before it was killed: {ended.said[-600:]}")


# --- at each system call ---------------------------------------------------------------------


def _save(lab: Laboratory) -> int:
    """Train on to the next save, be traced during it, and leave when it is done."""

    def note(line: dict[str, Any]) -> None:
        if line["kind"] == "step" and line["step"] == BEGUN + SAVE_EVERY:
            tracing.submit()
        elif line["kind"] == "checkpoint":
            os._exit(0)

    return lab.train_watched(note)


def _run(lab: Laboratory) -> int:
    tracing.submit()
    return transept(*lab.train_words)


def _preparation(lab: Laboratory) -> int:
    tracing.submit()
    return transept(*lab.prepare_words("train"), "--output", "ids")


def _any(call: tracing.Call) -> bool:
    return True


def _changing(call: tracing.Call) -> bool:
    """Whether it changes a file, or flushes it: between two such calls all moments are alike."""
    if call.name in ("open", "openat"):
        return call.creates_or_empties
    if call.name == "write":
        return "/said-" not in call.file(0)  # but not what it tells its terminal
    return call.name is not None


@dataclass(frozen=True, slots=True)
class AtEachCall:
    """Ends `work` at the n-th of the calls that count, and looks whether all is well."""

    work: Callable[[Laboratory], int]
    counts: tracing.Judge
    recover: Callable[[Bench], None]
    begin: Callable[[Bench], None] = lambda bench: None
    cuts: int = 2
    """How often the power is cut at each call."""

    def kill(self, bench: Bench) -> None:
        self._end(bench, bench.case)
        self.recover(bench)

    def cut_power(self, bench: Bench) -> None:
        """Of two cuts, before one all names have reached the disk, before the other not all."""
        ledger = self._end(bench, bench.case // self.cuts)
        n = len(ledger.names)
        ledger.cut_power(bench.chance.randint(0, n) if bench.case % 2 else n, bench.chance)
        self.recover(bench)

    def kill_cases(self, short: int) -> Cases:
        return drawn(self._total, short)

    def power_cases(self, short: int) -> Cases:
        return drawn(lambda lab: self.cuts * self._total(lab), short)

    def _total(self, lab: Laboratory) -> int:
        """How many such calls there are."""
        found = 0

        def judge(call: tracing.Call) -> bool:
            nonlocal found
            found += self.counts(call)
            return False

        with lab.case("counting") as directory:
            bench = Bench(lab, 0, random.Random(0), directory)
            self.begin(bench)
            child = bench.child(lambda: self.work(lab))
            child.ended(tracing.follow(child.pid, judge)).demand(0)
        return found

    def _end(self, bench: Bench, at: int) -> tracing.Ledger:
        left = at
        ledger = tracing.Ledger(os.path.realpath(bench.directory))

        def judge(call: tracing.Call) -> bool:
            nonlocal left
            left -= self.counts(call)
            return left < 0

        self.begin(bench)
        child = bench.child(lambda: self.work(bench.lab))
        ended = child.ended(tracing.follow(child.pid, judge, ledger))
        # Two runs may differ by a call that allocates memory; the end is a moment, too.
        demand(ended.code in (0, -signal.SIGKILL), f"it ended by itself: {ended}")
        return ledger


def _prepares_the_same(bench: Bench) -> None:
    """The same command goes on, and gives the same corpus."""
    words = (*bench.lab.prepare_words("train"), "--output", "ids")
    bench.child(lambda: transept(*words)).wait().demand(0)
    bench.demand_same_corpus(bench.directory / "ids")


SAVE = AtEachCall(_save, _any, Bench.demand_recovery, Bench.begin_half)
CHANGES_OF_SAVE = AtEachCall(_save, _changing, Bench.demand_recovery, Bench.begin_half)
CHANGES_OF_RUN = AtEachCall(_run, _changing, Bench.demand_recovery, cuts=1)
CHANGES_OF_PREPARATION = AtEachCall(_preparation, _changing, _prepares_the_same)

AS_UNDISTURBED = "the run resumes and ends like an undisturbed one, bit for bit"
SAME_CORPUS = "the same command resumes and gives the same corpus"
FAULTS = [
    Fault(
        name="kill",
        does="kill -9 at a random moment of training",
        promise=AS_UNDISTURBED,
        happen=_at_a_random_moment,
        cases=times(6, 200),
    ),
    Fault(
        name="kill-save",
        does="kill -9 at each system call of a save",
        promise=AS_UNDISTURBED,
        happen=SAVE.kill,
        cases=SAVE.kill_cases(8),
        unavailable=tracing.unavailable,
    ),
    Fault(
        name="power-save",
        does="power cut at each file operation of a save",
        promise=AS_UNDISTURBED,
        happen=CHANGES_OF_SAVE.cut_power,
        cases=CHANGES_OF_SAVE.power_cases(8),
        unavailable=tracing.unavailable,
    ),
    Fault(
        name="kill-run",
        does="kill -9 at each file operation of a whole run",
        promise=AS_UNDISTURBED,
        happen=CHANGES_OF_RUN.kill,
        cases=CHANGES_OF_RUN.kill_cases(6),
        unavailable=tracing.unavailable,
    ),
    Fault(
        name="power-run",
        does="power cut at each file operation of a whole run",
        promise=AS_UNDISTURBED,
        happen=CHANGES_OF_RUN.cut_power,
        cases=CHANGES_OF_RUN.power_cases(6),
        unavailable=tracing.unavailable,
    ),
    Fault(
        name="kill-prepare",
        does="kill -9 at each file operation of data prepare",
        promise=SAME_CORPUS,
        happen=CHANGES_OF_PREPARATION.kill,
        cases=CHANGES_OF_PREPARATION.kill_cases(6),
        unavailable=tracing.unavailable,
    ),
    Fault(
        name="power-prepare",
        does="power cut at each file operation of data prepare",
        promise=SAME_CORPUS,
        happen=CHANGES_OF_PREPARATION.cut_power,
        cases=CHANGES_OF_PREPARATION.power_cases(6),
        unavailable=tracing.unavailable,
    ),
]
