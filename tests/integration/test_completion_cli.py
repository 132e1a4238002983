"""`transept --completion`: keys typed into a real shell, and their completion."""

import os
import pty
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

WITH_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes standard input the terminal that controls the shell; fish insists on one."""

PLACES = {
    "bash": "script",
    "fish": "fish/completions/transept.fish",
}
"""The location of the script: for fish, the one in the help."""
STARTS = {
    "bash": (
        "start",
        """
bind 'set bell-style none'
transept() { printf '%s\\n' "$*" >> heard; }
. ./script
""",
    ),
    "fish": (
        "fish/config.fish",
        """
function transept; echo $argv >> heard; end
set -g fish_autosuggestion_enabled 0
""",
    ),
}
"""The file that the shell reads first: `transept` writes down the line that it is given."""
WORDS = {
    "bash": ["bash", "--noprofile", "--rcfile", "start", "-i"],
    "fish": ["fish", "-i"],
}
COMPLETED = {
    "transl\t": "translate",
    "trai\t": "train",
    "recipe ru\t--un\tav\t": "recipe run --until average",
    "translate --engine fus\t--inp\tger\t": "translate --engine fused --input german.txt",
    "translate --model mod\t": "translate --model models",
    "recipe show ger\t": "recipe show german.txt",
    "tokenizer train --input x ger\t--vo\t": "tokenizer train --input x german.txt --vocab-size",
}


@cache
def script_for(shell: str) -> str:
    words = [sys.executable, "-m", "transept", "--completion", shell]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@contextmanager
def interactive(shell: str, directory: Path) -> Iterator[int]:
    """A shell in a terminal. Its output is read and discarded."""
    master, slave = pty.openpty()
    home = {"HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_TERMINAL, *WORDS[shell]],
        cwd=directory,
        env=os.environ | home | {"TERM": "xterm", "LC_ALL": "C.UTF-8"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)

    def drain() -> None:
        with suppress(OSError):  # as a terminal says that all who wrote to it have gone
            while os.read(master, 4096):
                pass

    reader = threading.Thread(target=drain)
    reader.start()
    try:
        yield master
    finally:
        process.kill()
        process.wait()
        reader.join()
        os.close(master)


def heard_by(shell: str, directory: Path, typed: list[str]) -> list[str]:
    """Type one line after another, and return what `transept` was given each time."""
    heard = directory / "heard"
    heard.touch()
    with interactive(shell, directory) as terminal:
        for count, keys in enumerate(typed, start=1):
            os.write(terminal, f"transept {keys}\n".encode())
            deadline = time.monotonic() + 120
            while len(heard.read_text().splitlines()) < count and time.monotonic() < deadline:
                time.sleep(0.02)
    # Some shells leave a slash after a directory.
    return [line.rstrip(" /") for line in heard.read_text().splitlines()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes_commands_options_values_and_files(shell: str, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for name, text in [(PLACES[shell], script_for(shell)), STARTS[shell]]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "german.txt").touch()
    (tmp_path / "models").mkdir()
    assert heard_by(shell, tmp_path, [*COMPLETED]) == [*COMPLETED.values()]


def test_the_script_for_fish_has_the_commands() -> None:
    script = script_for("fish")
    assert "transept" in script
    for word in ("translate", "recipe", "until", "ctranslate2-int8"):
        assert word in script
