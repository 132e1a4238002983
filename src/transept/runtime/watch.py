"""Detects ranks that hang, and reports a rank's failure to all others.

Each rank records its current activity in a `Pulse`. A separate thread publishes it through
torchrun's store together with a heartbeat counter. When the main thread has been blocked for too
long, the published pulses show which rank all are waiting for: one whose counter has stopped
(its process is stopped or its machine is down), otherwise the one furthest behind.
"""

import json
import math
import platform
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from torch import distributed as dist

from transept.errors import RESUMABLE, RankError

PHASES = ("starting", "reading data", "computing", "reducing gradients", "validating", "agreeing",
          "saving")  # fmt: skip
"""The phases of a step, in order."""

ASKED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""The signals that torchrun forwards to its ranks when it is asked to stop."""
LEAVING = 5.0
"""Seconds a rank has to receive the cause and exit by itself after another rank failed."""
AGREEING = 10.0
"""Seconds within which all ranks must agree to stop after one of them was asked to."""


@dataclass(slots=True)
class Pulse:
    """The current activity of this rank. Written by the main thread, read by the watchdog."""

    step: int = 0
    phase: str = PHASES[0]
    since: float = 0.0
    """When the phase began."""
    stopping: bool = False
    """Whether all ranks have agreed to stop."""

    def at(self, phase: str, step: int | None = None) -> None:
        """Record the start of a phase."""
        self.phase, self.since = phase, time.monotonic()
        if step is not None:
            self.step = step

    def rest(self) -> None:
        """Suspend the time limit until the next call of `at`.

        For work that one rank does alone, however long it takes, and for ranks waiting for it.
        """
        self.since = math.inf

    def agreed(self) -> None:
        """Record that all ranks will stop."""
        self.stopping = True


@dataclass(frozen=True, slots=True)
class Notice:
    """The last published activity of a rank."""

    rank: int
    host: str
    step: int
    phase: str
    beats: int

    @property
    def progress(self) -> tuple[int, int]:
        """The rank's progress, for comparison."""
        return self.step, PHASES.index(self.phase)

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.host} (step {self.step:,}, {self.phase})"


class Board:
    """Where ranks publish their state: torchrun's store, or rank 0's if torchrun has none."""

    def __init__(self, store: Any, rank: int, size: int, *, keeps_store: bool = False) -> None:
        self._store, self.rank, self.size = store, rank, size
        self._keeps_store = keeps_store
        self._host = platform.node()
        self._cause: RankError | None = None
        """Why all ranks must end, once this rank knows."""
        self.published_first = False
        """Whether this rank was the first to publish a cause."""
        self._beats = 0
        # The watchdog thread and the main thread share this connection.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """This rank's name in messages."""
        return f"rank {self.rank} on {self._host}"

    def publish(self, text: str, code: int) -> RankError:
        """Publish why all ranks must end. Only the first cause counts; return that one."""
        cause = json.dumps({"text": text, "code": code})
        with self._lock:
            try:
                first = self._store.compare_set("failure", "", cause)
            except (dist.DistError, RuntimeError):
                return RankError(text, code)
            self.published_first = first == cause.encode()
            return self._acknowledge(first)

    def published(self) -> RankError | None:
        """Return the published cause, if any."""
        with self._lock:
            if self._cause is None and self._store.check(["failure"]):
                self._acknowledge(self._store.get("failure"))
            return self._cause

    def _acknowledge(self, cause: bytes) -> RankError:
        """Keep the cause, and confirm to the rank that hosts the store that it was received."""
        if self._cause is None:
            failure = json.loads(cause)
            self._cause = RankError(failure["text"], failure["code"])
            with suppress(dist.DistError, RuntimeError):  # the store's host may be gone
                self._store.add("acknowledged", 1)
        return self._cause

    def leave(self) -> None:
        """Prepare to exit. If this process hosts the store, wait until all know the cause."""
        deadline = time.monotonic() + LEAVING
        while self._keeps_store and time.monotonic() < deadline:
            with self._lock:
                acknowledged = self._store.add("acknowledged", 0)
            if acknowledged >= self.size:
                return
            time.sleep(0.05)

    def first_cause(self) -> RankError:
        """Return the cause another rank published, or an error that none was published."""
        deadline = time.monotonic() + LEAVING
        try:
            while time.monotonic() < deadline:
                if (error := self.published()) is not None:
                    return error
                time.sleep(0.1)
            return self.publish(
                "another rank exited without reporting an error: it was killed, or its machine is "
                "down. With torchrun's --max-restarts, training resumes from the last checkpoint",
                code=1,
            )
        except (dist.DistError, RuntimeError):
            return RankError(
                "the machine of rank 0, which connects all ranks, is down: run the same command "
                "again to resume from the last checkpoint"
            )

    def beat(self, pulse: Pulse) -> None:
        """Publish this rank's activity and heartbeat."""
        self._beats += 1
        shown = {"host": self._host, "step": pulse.step, "phase": pulse.phase, "beats": self._beats}
        with self._lock:
            self._store.set(f"pulse/{self.rank}", json.dumps(shown))

    def notices(self) -> list[Notice]:
        """Return the last published state of all ranks."""
        found = []
        with self._lock:
            for rank in range(self.size):
                key = f"pulse/{rank}"
                if self._store.check([key]):
                    found.append(Notice(rank, **json.loads(self._store.get(key))))
        return found


class Watchdog:
    """A thread that monitors the main thread and the other ranks, within a `with` block."""

    def __init__(
        self,
        pulse: Pulse,
        board: Board,
        patience: float,
        end: Callable[[RankError], None],
        setting: str | None = None,
    ) -> None:
        self._pulse, self._board, self._patience, self._end = pulse, board, patience, end
        self._setting = setting
        self._period = min(1.0, patience / 10)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._monitor, name="watch", daemon=True)
        self._beats: dict[int, tuple[int, float]] = {}
        """The last heartbeat of each rank, and when it was first seen."""
        self._signals = _Signals()
        self._asked: float | None = None

    def __enter__(self) -> "Watchdog":
        self._pulse.at(PHASES[0])
        self._signals.open()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._signals.close()

    def _monitor(self) -> None:
        try:
            while not self._over.wait(self._period):
                self._board.beat(self._pulse)
                if (error := self._board.published()) is not None:
                    # Gloo notices when a rank is gone, and then this rank exits by itself: wait
                    # for that. NCCL does not notice.
                    if not self._over.wait(LEAVING):
                        self._end(error)
                    return
                self._check_signals()
                self._check_ranks()
        except (dist.DistError, RuntimeError):
            if not self._over.wait(LEAVING):
                self._end(self._board.first_cause())

    def _check_signals(self) -> None:
        """End this process if it was asked to stop and the ranks do not agree in time."""
        if self._asked is None and self._signals.received():
            self._asked = time.monotonic()
        late = self._asked is not None and time.monotonic() - self._asked > AGREEING
        if late and not self._pulse.stopping:
            self._end(
                RankError(
                    f"rank {self._board.rank} was asked to stop, but the ranks did not agree on "
                    f"a step to stop at within {AGREEING:.0f} s; the last checkpoint is kept",
                    RESUMABLE,
                )
            )

    def _check_ranks(self) -> None:
        """If this rank has made no progress for too long, name the rank that all wait for."""
        idle = time.monotonic() - self._pulse.since
        if idle < self._patience / 2:
            self._beats.clear()
            return
        now = time.monotonic()
        notices = self._board.notices()
        for notice in notices:
            if self._beats.get(notice.rank, (None,))[0] != notice.beats:
                self._beats[notice.rank] = notice.beats, now
        if idle >= self._patience:
            silent = [one for one in notices if now - self._beats[one.rank][1] > self._patience / 4]
            self._end(self._board.publish(self._describe_hang(notices, silent), code=1))

    def _describe_hang(self, notices: list[Notice], silent: list[Notice]) -> str:
        last = min(notice.progress for notice in notices)
        behind = [notice for notice in notices if notice.progress == last]
        limit = f"for {self._patience:g} s" + (f" ({self._setting})" if self._setting else "")
        if silent:
            return (
                f"{_listed(silent)} does not respond and has made no progress {limit}: its "
                "process is stopped, or its machine is down"
            )
        if len(behind) < len(notices):
            return f"{_listed(behind)} has made no progress {limit}; the others wait for it"
        return f"no rank has made progress {limit}: {_listed(notices)}"


def _listed(notices: list[Notice]) -> str:
    return " and ".join(map(str, notices))


class _Signals:
    """Signals as the operating system delivers them.

    A main thread blocked in a collective would handle them only after the collective returns.
    """

    def open(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        for end in (self._receiver, self._sender):
            end.setblocking(False)
        self._before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

    def received(self) -> bool:
        """Whether a stop signal has arrived since the last call."""
        try:
            return not ASKED.isdisjoint(self._receiver.recv(4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        signal.set_wakeup_fd(self._before)
        self._receiver.close()
        self._sender.close()
