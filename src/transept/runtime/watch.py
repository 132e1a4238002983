"""Ranks that stand still are found and named; ranks that fail are heard by all.

Each rank notes what it is doing in a `Pulse`. A thread of its own tells the others through
torchrun's store, and counts as it does. Where the main thread has stood still for too long, the
pulses tell whom all are waiting for: a rank that no longer counts (its process is stopped or its
machine gone), or else the one that is furthest behind.
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
"""What a rank does in a step, in this order."""

ASKED = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""The signals that torchrun passes on to its ranks when it is asked to stop."""
LEAVING = 5.0
"""Seconds that a rank has to end by itself once another has failed, and to hear why."""
AGREEING = 10.0
"""Seconds within which all ranks must agree to stop once one of them was asked to."""


@dataclass(slots=True)
class Pulse:
    """What this rank is doing. Written by the main thread, read by the watchdog."""

    step: int = 0
    phase: str = PHASES[0]
    since: float = 0.0
    """When that began."""
    stopping: bool = False
    """Whether all ranks know that they shall stop."""

    def at(self, phase: str, step: int | None = None) -> None:
        """Note what begins now."""
        self.phase, self.since = phase, time.monotonic()
        if step is not None:
            self.step = step

    def rest(self) -> None:
        """Note that this rank works by itself, or waits for one that does, however long it takes.

        The next `at` ends that.
        """
        self.since = math.inf

    def agreed(self) -> None:
        """Note that all ranks will stop."""
        self.stopping = True


@dataclass(frozen=True, slots=True)
class Notice:
    """What a rank has told the others of itself."""

    rank: int
    host: str
    step: int
    phase: str
    beats: int

    @property
    def place(self) -> tuple[int, int]:
        """How far it has come."""
        return self.step, PHASES.index(self.phase)

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.host} (step {self.step:,}, {self.phase})"


class Board:
    """Where ranks tell each other how they are: in torchrun's store, or else in rank 0's."""

    def __init__(self, store: Any, rank: int, size: int, *, keeps_store: bool = False) -> None:
        self._store, self.rank, self.size = store, rank, size
        self._keeps_store = keeps_store
        self._host = platform.node()
        self._cause: RankError | None = None
        """Why all must end, once this rank knows."""
        self.spoke = False
        """Whether this rank was the first to say why all must end."""
        self._beats = 0
        # The watchdog's thread and the main thread both talk over this one connection.
        self._lock = threading.Lock()

    @property
    def who(self) -> str:
        """This rank, as others should know it."""
        return f"rank {self.rank} on {self._host}"

    def publish(self, text: str, code: int) -> RankError:
        """Say why all ranks must end. Only the first cause counts; return that one."""
        cause = json.dumps({"text": text, "code": code})
        with self._lock:
            try:
                first = self._store.compare_set("failure", "", cause)
            except (dist.DistError, RuntimeError):
                return RankError(text, code)
            self.spoke = first == cause.encode()
            return self._heard(first)

    def published(self) -> RankError | None:
        """Why all must end, where someone has said so."""
        with self._lock:
            if self._cause is None and self._store.check(["failure"]):
                self._heard(self._store.get("failure"))
            return self._cause

    def _heard(self, cause: bytes) -> RankError:
        """Note why all must end, and tell the rank that keeps the store that this one knows."""
        if self._cause is None:
            said = json.loads(cause)
            self._cause = RankError(said["text"], said["code"])
            with suppress(dist.DistError, RuntimeError):  # whoever kept the store may be gone
                self._store.add("heard", 1)
        return self._cause

    def leave(self) -> None:
        """End. If the store ends with this process, wait until the others know why."""
        deadline = time.monotonic() + LEAVING
        while self._keeps_store and time.monotonic() < deadline:
            with self._lock:
                n_heard = self._store.add("heard", 0)
            if n_heard >= self.size:
                return
            time.sleep(0.05)

    def first_cause(self) -> RankError:
        """Why the others are gone: what one of them said, or that none of them said anything."""
        deadline = time.monotonic() + LEAVING
        try:
            while time.monotonic() < deadline:
                if (error := self.published()) is not None:
                    return error
                time.sleep(0.1)
            return self.publish(
                "another rank has ended without a word: it was killed, or its machine is gone. "
                "With torchrun's --max-restarts the work goes on from what was saved last",
                code=1,
            )
        except (dist.DistError, RuntimeError):
            return RankError(
                "the machine of rank 0, where all ranks meet, is gone: start the same command "
                "again, and it goes on from what was saved last"
            )

    def beat(self, pulse: Pulse) -> None:
        """Show what this rank is doing, and that it lives."""
        self._beats += 1
        shown = {"host": self._host, "step": pulse.step, "phase": pulse.phase, "beats": self._beats}
        with self._lock:
            self._store.set(f"pulse/{self.rank}", json.dumps(shown))

    def notices(self) -> list[Notice]:
        """All ranks, as they showed themselves last."""
        found = []
        with self._lock:
            for rank in range(self.size):
                key = f"pulse/{rank}"
                if self._store.check([key]):
                    found.append(Notice(rank, **json.loads(self._store.get(key))))
        return found


class Watchdog:
    """The thread that looks after the main thread and the other ranks, within a `with` block."""

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
        self._thread = threading.Thread(target=self._look_after, name="watch", daemon=True)
        self._beats: dict[int, tuple[int, float]] = {}
        """The last beat of each rank, and when it was first seen."""
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

    def _look_after(self) -> None:
        try:
            while not self._over.wait(self._period):
                self._board.beat(self._pulse)
                if (error := self._board.published()) is not None:
                    # Gloo notices that a peer has gone, and this rank then ends by itself: wait
                    # for that. NCCL does not notice.
                    if not self._over.wait(LEAVING):
                        self._end(error)
                    return
                self._look_at_signals()
                self._look_at_ranks()
        except (dist.DistError, RuntimeError):
            if not self._over.wait(LEAVING):
                self._end(self._board.first_cause())

    def _look_at_signals(self) -> None:
        """End this process if it was asked to stop, and the ranks do not agree on that in time."""
        if self._asked is None and self._signals.heard():
            self._asked = time.monotonic()
        late = self._asked is not None and time.monotonic() - self._asked > AGREEING
        if late and not self._pulse.stopping:
            self._end(
                RankError(
                    f"rank {self._board.rank} was asked to stop, and the ranks did not agree on "
                    f"a step to stop at within {AGREEING:.0f} s: the last checkpoint stays",
                    RESUMABLE,
                )
            )

    def _look_at_ranks(self) -> None:
        """Once this rank has stood still for too long, name the rank that all are waiting for."""
        stood = time.monotonic() - self._pulse.since
        if stood < self._patience / 2:
            self._beats.clear()
            return
        now = time.monotonic()
        notices = self._board.notices()
        for notice in notices:
            if self._beats.get(notice.rank, (None,))[0] != notice.beats:
                self._beats[notice.rank] = notice.beats, now
        if stood >= self._patience:
            silent = [one for one in notices if now - self._beats[one.rank][1] > self._patience / 4]
            self._end(self._board.publish(self._who_hangs(notices, silent), code=1))

    def _who_hangs(self, notices: list[Notice], silent: list[Notice]) -> str:
        last = min(notice.place for notice in notices)
        behind = [notice for notice in notices if notice.place == last]
        limit = f"for {self._patience:g} s" + (f" ({self._setting})" if self._setting else "")
        if silent:
            return (
                f"{_listed(silent)} does not answer and has not moved {limit}: its process is "
                "stopped, or its machine is gone"
            )
        if len(behind) < len(notices):
            return f"{_listed(behind)} has not moved {limit}, and the others wait for it"
        return f"no rank has moved {limit}: {_listed(notices)}"


def _listed(notices: list[Notice]) -> str:
    return " and ".join(map(str, notices))


class _Signals:
    """Signals as the operating system delivers them.

    A main thread that waits in a collective hears of them only when that is over.
    """

    def open(self) -> None:
        self._receiver, self._sender = socket.socketpair()
        for end in (self._receiver, self._sender):
            end.setblocking(False)
        self._before = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

    def heard(self) -> bool:
        """Whether one has come since the last time."""
        try:
            return not ASKED.isdisjoint(self._receiver.recv(4096))
        except BlockingIOError:
            return False

    def close(self) -> None:
        signal.set_wakeup_fd(self._before)
        self._receiver.close()
        self._sender.close()
