"""Standard output and standard error: readers that have gone, and bars of progress.

When the reader of a stream has gone (`transept … | head`), standard error never decides whether a
command continues. Standard output does where results are printed there: without a reader, the
command ends. A command that stores its results calls `outlive_readers` and continues.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.progress import Progress


class Outlet(io.FileIO):
    """The file below a standard stream. Once its reader has gone, the stream leads nowhere."""

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        """Write to a descriptor.

        Args:
            descriptor: It stays open when this file is closed.
            needed: Whether it is an error that the reader has gone.
        """
        super().__init__(descriptor, "wb", closefd=False)
        self.needed = needed
        self.abandoned = False
        """Whether the reader has gone."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write; where the reader has gone, raise BrokenPipeError if it is needed."""
        try:
            return super().write(data)
        except OSError as error:
            # A terminal that was closed gives EIO.
            gone = error.errno == errno.EPIPE or (error.errno == errno.EIO and not self.needed)
            if not gone:
                raise
            self._lead_nowhere()
            if self.needed:
                raise
            return memoryview(data).nbytes

    def _lead_nowhere(self) -> None:
        self.abandoned = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Within it, sys.stdout and sys.stderr write to an `Outlet` each, if they are files."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _through_outlet(before[0], True), _through_outlet(before[1], False)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):  # already reported
                stream.flush()
        sys.stdout, sys.stderr = before


def outlive_readers() -> None:
    """Let this command continue when the reader of its standard output has gone."""
    if (outlet := _outlet(sys.stdout)) is not None:
        outlet.needed = False


def reader_has_gone() -> bool:
    """Whether the reader of standard output has gone."""
    outlet = _outlet(sys.stdout)
    return outlet is not None and outlet.abandoned


def _through_outlet(stream: TextIO, needed: bool) -> TextIO:
    """The same stream, through an outlet; tests have streams that are not files."""
    buffer = getattr(stream, "buffer", None)
    unbuffered = isinstance(buffer, io.FileIO)  # PYTHONUNBUFFERED, python -u
    if type(stream) is not io.TextIOWrapper or not (
        unbuffered or isinstance(buffer, io.BufferedWriter)
    ):
        return stream
    stream.flush()
    outlet = Outlet(stream.fileno(), needed=needed)
    return io.TextIOWrapper(
        # As Python does it: in spite of its type, TextIOWrapper writes to a raw file, too.
        cast(BinaryIO, outlet) if unbuffered else io.BufferedWriter(outlet),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _outlet(stream: TextIO) -> Outlet | None:
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    return raw if isinstance(raw, Outlet) else None


# --- progress --------------------------------------------------------------------------------


class ProgressBar:
    """A bar on standard error, while there is a terminal and nothing else is written to it.

    Of torchrun's workers on a machine, the first shows one.
    """

    def __init__(self, what: str, total: int | None, *, results_to_stdout: bool) -> None:
        """Begin a bar.

        Args:
            what: The unit that is counted: `lines`.
            total: Their number; None if it is unknown.
            results_to_stdout: Whether results are printed to standard output meanwhile: then there
                is a bar only if that is not a terminal.
        """
        in_the_way = results_to_stdout and sys.stdout.isatty()
        is_first = os.environ.get("LOCAL_RANK", "0") == "0"
        is_seen = is_first and sys.stderr.isatty() and not in_the_way
        self._bar = _bar() if is_seen else None
        self._task = None if self._bar is None else self._bar.add_task(what, total=total)
        self._begun: float = 0

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def share(self, of: int, done: int, total: int | None) -> None:
        """Show that the share `done / total` of the next `of` is done."""
        self._show(self._begun + of * done / (total or 1))

    def advance(self, n: int) -> None:
        """Show that all of the next `n` are done."""
        self._begun += n
        self._show(self._begun)

    def watch(self, done: int, total: int | None) -> None:
        """Show that `done` of all are done."""
        self._show(done)

    def _show(self, completed: float) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=completed)


def _bar() -> "Progress":
    # Imported here, so that commands without a bar do not wait for it.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        MofNCompleteColumn(),
        BarColumn(bar_width=32),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
        redirect_stdout=False,  # results go there: the bar must not print them on this terminal
    )
