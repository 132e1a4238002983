"""Ctrl-C and SIGTERM: one as the other, or both as a request to stop at the next good moment."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Literal


class StopRequest:
    """Whether someone has asked to stop, and how."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def terminable() -> Iterator[None]:
    """Within it, SIGTERM ends the work as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stop_requests(second: Literal["obey", "ignore"] = "obey") -> Iterator[StopRequest]:
    """Note the first SIGINT or SIGTERM instead of dying of it; obey the second one at once.

    Under torchrun a second one is no sign of impatience: it passes on what its workers may have
    heard already.
    """
    request = StopRequest()
    previous = {}

    def note(number: int, frame: FrameType | None) -> None:
        if not request:
            request.signal = signal.Signals(number)
        elif second == "obey":
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        previous[number] = signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
