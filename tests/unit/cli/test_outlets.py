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
def closed_pipe() -> Iterator[int]:
    """The write end of a pipe whose read end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_standard_streams_keep_encoding_and_contents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    with (tmp_path / "read").open("w", encoding="ascii", errors="replace") as file:
        monkeypatch.setattr(sys, name, file)
        with standard_streams():
            getattr(sys, name).write("α one\n")
        assert getattr(sys, name) is file
    assert (tmp_path / "read").read_text() == "? one\n"


def test_outlet_discards_output_when_pipe_is_closed() -> None:
    with closed_pipe() as writer:
        outlet = Outlet(writer, needed=False)
        assert [outlet.write(b"one"), outlet.write(b"four")] == [3, 4]
        assert outlet.abandoned
        assert os.write(writer, b"two") == 3  # also direct writes to the descriptor


def test_outlet_discards_output_when_terminal_is_closed() -> None:
    terminal, writer = pty.openpty()
    os.close(terminal)
    assert Outlet(writer, needed=False).write(b"one") == 3
    os.close(writer)


def test_needed_outlet_raises_when_pipe_is_closed() -> None:
    with closed_pipe() as writer:
        outlet = Outlet(writer, needed=True)
        with pytest.raises(BrokenPipeError):
            outlet.write(b"one")
        assert outlet.abandoned


@contextmanager
def standard_output(
    monkeypatch: pytest.MonkeyPatch, descriptor: int, unbuffered: bool
) -> Iterator[None]:
    """Standard output as Python opens it, with or without PYTHONUNBUFFERED."""
    with os.fdopen(descriptor, "wb", 0 if unbuffered else -1, closefd=False) as file:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, write_through=unbuffered))
        with standard_streams():
            yield


@pytest.mark.parametrize("unbuffered", [False, True])
def test_closed_standard_output_raises_unless_ignored(
    monkeypatch: pytest.MonkeyPatch, unbuffered: bool
) -> None:
    with closed_pipe() as writer, standard_output(monkeypatch, writer, unbuffered):
        with pytest.raises(BrokenPipeError):
            print("one", flush=True)
        assert stdout_was_closed()
    with closed_pipe() as writer, standard_output(monkeypatch, writer, unbuffered):
        ignore_closed_stdout()
        print("one", flush=True)
        assert stdout_was_closed()
