"""`transept translate --stream`: translations as they are written."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from transept.api.texts import Draft

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""At the end of a draft: a character of which not all bytes are there yet."""
_DIM, _PLAIN, _ERASE_TO_END = "\x1b[2m", "\x1b[22m", "\x1b[K"


class Page(Protocol):
    """Where a translation is written."""

    def show(self, sure: str, rest: str) -> None:
        """What has become certain since the last time, and what may still change."""

    def end(self) -> None:
        """The translation is whole."""


class Pipe:
    """Only what is certain is written, as soon as it is."""

    def show(self, sure: str, rest: str) -> None:
        """Write what is certain."""
        if sure:
            _write(sure)

    def end(self) -> None:
        """End the line."""
        _write("\n")


class Terminal:
    """What may still change stands dimly behind what is certain, and is written over.

    It is cut where the terminal's line ends, so that it never takes a second one: what lies on
    another line could not be written over once the screen has scrolled.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._column, self._dim = 0, 0

    def show(self, sure: str, rest: str) -> None:
        """Write over what was dim."""
        from rich.cells import cell_len, set_cell_size

        self._column = (self._column + cell_len(sure)) % self._width
        room = self._width - self._column - 1
        shown = rest if cell_len(rest) <= room else set_cell_size(rest, room)
        _write(f"{self._back()}{sure}{_ERASE_TO_END}{_DIM}{shown}{_PLAIN}")
        self._dim = cell_len(shown)

    def end(self) -> None:
        """Leave nothing dim."""
        _write(f"{self._back()}{_ERASE_TO_END}\n")
        self._column = self._dim = 0

    def _back(self) -> str:
        return f"\x1b[{self._dim}D" if self._dim else ""


def open_page() -> Page:
    """A page for standard output, be it a terminal or not."""
    if not sys.stdout.isatty():
        return Pipe()
    from shutil import get_terminal_size

    return Terminal(get_terminal_size().columns)


def write_drafts(drafts: "Iterable[Draft]", page: Page) -> None:
    """Follow a translation until it is whole."""
    written = 0
    for draft in drafts:
        # A model can spell any byte, and a line must stay a line.
        text = draft.text.replace("\n", " ")
        sure = text[: draft.stable].rstrip(_UNFINISHED)
        page.show(sure[written:], text[max(written, len(sure)) :].rstrip(_UNFINISHED))
        written = max(written, len(sure))
    page.end()


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
