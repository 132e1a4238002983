"""SIGHUP from the first moment on. Nothing is imported here that takes time."""

import signal
from types import FrameType


class Hangups:
    """Signals to reload that come before there is anything to reload.

    Unheeded, they would end the process while it loads its models.
    """

    def __init__(self) -> None:
        self.came = False
        signal.signal(signal.SIGHUP, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = True
