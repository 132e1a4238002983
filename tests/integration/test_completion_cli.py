"""`transept completion`: keys typed into a real shell, and what they become."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

PROMPT = b"<ready>"
START = """
PS1='<ready>'
bind 'set bell-style none'
transept() { printf '%s\\n' "$*" >> heard; }
. ./script
"""


def typed_into_bash(directory: Path, lines: list[str]) -> None:
    """Type one line after another at the prompt of an interactive bash."""
    master, slave = pty.openpty()
    words = ["bash", "--noprofile", "--rcfile", "start", "-i"]
    shell = subprocess.Popen(
        words, cwd=directory, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        for line in [*lines, "exit"]:
            shown = b""
            while PROMPT not in shown:
                shown += os.read(master, 4096)
            os.write(master, f"{line}\n".encode())
        shell.wait(timeout=30)
    finally:
        shell.kill()
        shell.wait()
        os.close(master)


def script_for(shell: str) -> str:
    words = [sys.executable, "-m", "transept", "completion", shell]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_bash_completes_commands_options_values_and_files(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script_for("bash"))
    (tmp_path / "start").write_text(START)
    (tmp_path / "german.txt").touch()
    completed = {
        "tra\tns\t": "translate",
        "tra\ti\t": "train",
        "recipe ru\t --un\t tr\t": "recipe run --until train",
        "translate --engine nat\t --inp\t ger\t": "translate --engine native --input german.txt",
        "completion f\t": "completion fish",
    }
    typed_into_bash(tmp_path, [f"transept {keys}" for keys in completed])
    heard = (tmp_path / "heard").read_text().splitlines()
    assert [line.rstrip() for line in heard] == list(completed.values())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_given_the_same_commands(shell: str) -> None:
    script = script_for(shell)
    assert "transept" in script
    for word in ("translate", "recipe", "until", "ctranslate2-int8"):
        assert word in script
