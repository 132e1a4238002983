"""Progress reports: every long-running function takes a `Watch`.

Training reports metrics instead (`training.observers`), because they are also its log.
"""

from collections.abc import Callable
from threading import Lock

Watch = Callable[[int, int | None], None]
"""Called with the amount of work done so far and the total, or None if the total is unknown.

It may raise an exception to stop the work."""


def no_progress(done: int, total: int | None) -> None:
    """The `Watch` that does nothing."""


class Tally:
    """A thread-safe counter that reports each new sum."""

    def __init__(self, watch: Watch = no_progress, total: int | None = None) -> None:
        """Start at 0.

        Args:
            watch: Called after each addition, by one thread at a time.
            total: The final sum, if known.
        """
        self._watch, self._lock = watch, Lock()
        self.done, self.total = 0, total

    def add(self, n: int) -> None:
        """Add n, and report the sum."""
        with self._lock:
            self.done += n
            self._watch(self.done, self.total)
