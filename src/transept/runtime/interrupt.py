"""Signals that ask for an end: obeyed as Ctrl-C is, noted until the next good moment, or held."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Literal

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
"""Ctrl-C, what a system sends before it takes a machine away, what Slurm's --signal does, and what
a process gets when its terminal or connection is closed."""


class StopRequest:
    """Whether someone has asked to stop, and how."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def terminable() -> Iterator[None]:
    """Within it, SIGTERM, SIGUSR1 and SIGHUP end the work as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(_heeded(STOP_SIGNALS[1:]), stop):
        yield


def _heeded(numbers: Sequence[signal.Signals]) -> list[signal.Signals]:
    """These signals without SIGHUP where that is ignored, as `nohup` asks for."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in numbers if not (ignored and number == signal.SIGHUP)]


@contextmanager
def _handled(
    numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Within it, these signals go to a handler."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def import_torch() -> None:
    """Import torch with signals held until it is there.

    An exception during the import is swallowed, so that the work goes on with half of numpy; or it
    ends the process in C++.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        import torch  # noqa: F401
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stop_requests(second: Literal["obey", "ignore"] = "obey") -> Iterator[StopRequest]:
    """Note the first signal instead of dying of it; the second one is obeyed at once.

    Under torchrun the second one should be ignored: it need not be another request, as torchrun
    passes on a signal that its workers may have received themselves.
    """
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if not request:
            request.signal = signal.Signals(number)
        elif second == "obey":
            raise KeyboardInterrupt

    with _handled(_heeded(STOP_SIGNALS), note):
        yield request


@contextmanager
def signals_held() -> Iterator[None]:
    """Within it, stop signals are held. A process that is started meanwhile never hears them."""
    from multiprocessing import resource_tracker  # here, because `--help` should not wait for it

    resource_tracker.ensure_running()  # else the first start does it, and unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
