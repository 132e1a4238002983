"""Standard output and standard error when their reader has gone: `transept … | head`.

Standard error never decides whether a command continues. Standard output does where results are
printed there: without a reader, the command ends. A command that stores its results
calls `outlive_readers` and continues.
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
