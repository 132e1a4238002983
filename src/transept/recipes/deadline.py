"""A command that must end in time asks its own training to stop, as Ctrl-C would."""

import signal
import time

from transept.training.observers import Line


class Deadline:
    """Watches a run, and asks it to stop at the first step that is reported after a given time.

    Here loading and compiling count too; the trainer's own clock does not see them.
    """

    def __init__(self, end: float) -> None:
        """End at this reading of the monotonic clock."""
        self._end = end
        self._asked = False

    def observe(self, line: Line) -> None:
        """Look at the clock."""
        if line["kind"] == "step" and not self._asked and time.monotonic() >= self._end:
            self._asked = True
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Do nothing."""
