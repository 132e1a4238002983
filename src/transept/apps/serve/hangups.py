"""Catching SIGHUP from the start of the process. This module imports nothing that takes time."""

import signal
from types import FrameType


class Hangups:
    """Notes a SIGHUP, the signal to reload the models, that comes before there are models.

    Without a handler, the signal would end the process while it loads its models.
    """

    def __init__(self) -> None:
        self.came = False
        """Whether a signal came after the last reload began."""
        signal.signal(signal.SIGHUP, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
