"""Stop signals: handled like Ctrl-C, recorded until the next safe point, or blocked."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Literal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
"""Ctrl-C, the signal before a machine is shut down, the one Slurm's --signal sends, and the one
sent when a terminal or connection closes."""


class StopRequest:
    """The stop signal received, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def terminable() -> Iterator[None]:
    """Treat SIGTERM, SIGUSR1 and SIGHUP like Ctrl-C within the block."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(_not_ignored(STOP_SIGNALS[1:]), stop):
        yield


def _not_ignored(numbers: Sequence[signal.Signals]) -> list[signal.Signals]:
    """Drop SIGHUP if it is ignored, as under `nohup`."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in numbers if not (ignored and number == signal.SIGHUP)]


@contextmanager
def _handled(
    numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Install a handler for these signals within the block."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def import_torch() -> None:
    """Import torch with stop signals blocked.

    An exception during the import may be swallowed, which leaves numpy half imported, or may
    abort the process in C++.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        import torch  # noqa: F401
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stop_requests(second: Literal["obey", "ignore"] = "obey") -> Iterator[StopRequest]:
    """Record the first stop signal instead of ending. The second one raises KeyboardInterrupt.

    Under torchrun the second one should be ignored: torchrun forwards signals that its workers
    may already have received, so it need not be a second request.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if not request:
            request.signal = signal.Signals(number)
        elif second == "obey":
            raise KeyboardInterrupt

    with _handled(_not_ignored(STOP_SIGNALS), note):
        yield request


@contextmanager
def signals_held() -> Iterator[None]:
    """Block stop signals within the block. Processes started there never receive them."""
    from multiprocessing import resource_tracker  # imported here to keep `--help` fast

    resource_tracker.ensure_running()  # otherwise the first start does, and unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
