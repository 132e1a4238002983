"""Standard output and standard error: closed pipes and progress bars.

The reader of a stream may close it (`transept … | head`). A command always continues if standard
error is closed. If standard output is closed, a command that prints its results there stops. A
command that writes its results to files calls `ignore_closed_stdout` and continues.
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
    """The file below a standard stream. Redirects to /dev/null once the reader has closed it."""

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        """Write to a descriptor.

        Args:
            descriptor: The file descriptor. It stays open when this file is closed.
            needed: Whether writing to a closed stream raises an error.
        """
        super().__init__(descriptor, "wb", closefd=False)
        self.needed = needed
        self.abandoned = False
        """Whether the reader has closed the stream."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write. If the reader has closed the stream, raise BrokenPipeError if it is needed."""
        try:
            return super().write(data)
        except OSError as error:
            # Writing to a closed terminal raises EIO.
            gone = error.errno == errno.EPIPE or (error.errno == errno.EIO and not self.needed)
            if not gone:
                raise
            self._redirect_to_devnull()
            if self.needed:
                raise
            return memoryview(data).nbytes

    def _redirect_to_devnull(self) -> None:
        self.abandoned = True
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, self.fileno())
        os.close(devnull)


@contextmanager
def standard_streams() -> Iterator[None]:
    """Make sys.stdout and sys.stderr write through an `Outlet`, if they are files."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _through_outlet(before[0], True), _through_outlet(before[1], False)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, AttributeError):  # already reported
                stream.flush()
        sys.stdout, sys.stderr = before


def ignore_closed_stdout() -> None:
    """Continue this command even if the reader closes its standard output."""
    if (outlet := _outlet(sys.stdout)) is not None:
        outlet.needed = False


def stdout_was_closed() -> bool:
    """Whether the reader has closed standard output."""
    outlet = _outlet(sys.stdout)
    return outlet is not None and outlet.abandoned


def _through_outlet(stream: TextIO, needed: bool) -> TextIO:
    """Wrap a stream in an outlet. Streams that are not files, as in tests, are unchanged."""
    buffer = getattr(stream, "buffer", None)
    unbuffered = isinstance(buffer, io.FileIO)  # PYTHONUNBUFFERED, python -u
    if type(stream) is not io.TextIOWrapper or not (
        unbuffered or isinstance(buffer, io.BufferedWriter)
    ):
        return stream
    stream.flush()
    outlet = Outlet(stream.fileno(), needed=needed)
    return io.TextIOWrapper(
        # As Python does: despite its type annotation, TextIOWrapper can write to a raw file.
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
    """A progress bar on standard error, shown only on a terminal.

    Only the first of torchrun's workers on a machine shows it.
    """

    def __init__(self, what: str, total: int | None, *, results_to_stdout: bool) -> None:
        """Create a bar.

        Args:
            what: The unit of progress: `lines`.
            total: The total, or None if unknown.
            results_to_stdout: Whether results are printed to standard output meanwhile. If that is
                a terminal, the bar is hidden.
        """
        results_on_terminal = results_to_stdout and sys.stdout.isatty()
        is_first = os.environ.get("LOCAL_RANK", "0") == "0"
        is_shown = is_first and sys.stderr.isatty() and not results_on_terminal
        self._bar = _bar() if is_shown else None
        self._task = None if self._bar is None else self._bar.add_task(what, total=total)
        self._completed: float = 0

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def share(self, of: int, done: int, total: int | None) -> None:
        """Show that `done / total` of the next `of` units are done."""
        self._show(self._completed + of * done / (total or 1))

    def advance(self, n: int) -> None:
        """Show that the next `n` units are done."""
        self._completed += n
        self._show(self._completed)

    def watch(self, done: int, total: int | None) -> None:
        """Show that `done` units are done in total."""
        self._show(done)

    def _show(self, completed: float) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=completed)


def _bar() -> "Progress":
    # Imported here because most commands do not show a bar.
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
        redirect_stdout=False,  # results must not be printed on this terminal
    )
