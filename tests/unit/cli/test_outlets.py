import io
import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from transept.cli.outlets import Outlet, ignore_closed_stdout, standard_streams, stdout_was_closed


@contextmanager
def abandoned_pipe() -> Iterator[int]:
    """The end of a pipe that is written to, after the other end was closed."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_standard_streams_write_as_before_when_they_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    with (tmp_path / "read").open("w", encoding="ascii", errors="replace") as file:
        monkeypatch.setattr(sys, name, file)
        with standard_streams():
            getattr(sys, name).write("α one\n")
        assert getattr(sys, name) is file
    assert (tmp_path / "read").read_text() == "? one\n"


def test_outlet_drops_output_when_its_reader_has_gone() -> None:
    with abandoned_pipe() as writer:
        outlet = Outlet(writer, needed=False)
        assert [outlet.write(b"one"), outlet.write(b"four")] == [3, 4]
        assert outlet.abandoned
        assert os.write(writer, b"two") == 3  # also what others write there


def test_outlet_drops_output_when_its_terminal_was_closed() -> None:
    terminal, writer = pty.openpty()
    os.close(terminal)
    assert Outlet(writer, needed=False).write(b"one") == 3
    os.close(writer)


def test_outlet_raises_when_the_reader_of_results_has_gone() -> None:
    with abandoned_pipe() as writer:
        outlet = Outlet(writer, needed=True)
        with pytest.raises(BrokenPipeError):
            outlet.write(b"one")
        assert outlet.abandoned


@contextmanager
def standard_output(
    monkeypatch: pytest.MonkeyPatch, descriptor: int, unbuffered: bool
) -> Iterator[None]:
    """Standard output as Python opens it, and as it does with PYTHONUNBUFFERED."""
    with os.fdopen(descriptor, "wb", 0 if unbuffered else -1, closefd=False) as file:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, write_through=unbuffered))
        with standard_streams():
            yield


@pytest.mark.parametrize("unbuffered", [False, True])
def test_standard_output_raises_until_the_command_outlives_its_readers(
    monkeypatch: pytest.MonkeyPatch, unbuffered: bool
) -> None:
    with abandoned_pipe() as writer, standard_output(monkeypatch, writer, unbuffered):
        with pytest.raises(BrokenPipeError):
            print("one", flush=True)
        assert stdout_was_closed()
    with abandoned_pipe() as writer, standard_output(monkeypatch, writer, unbuffered):
        ignore_closed_stdout()
        print("one", flush=True)
        assert stdout_was_closed()
