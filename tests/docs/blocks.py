"""The blocks of code in a page, and how a reader would run them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.starter import CLIENT

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT / "src"),
    "OMP_NUM_THREADS": "1",
    "COLUMNS": "100",
}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- ([^\n]*) -->\n$")
RUNNABLE = ("python", "sh")


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    mark: str
    """What the comment above it says: `not run: why`, `serves`, or nothing."""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language in RUNNABLE and not self.mark.startswith("not run: ")


def blocks_of(page: Path) -> list[Block]:
    return [*_blocks(page, page.read_text(encoding="utf-8"))]


def _blocks(page: Path, text: str) -> Iterator[Block]:
    for match in FENCE.finditer(text):
        mark = MARK.search(text[: match.start()])
        line = text.count("\n", 0, match.start()) + 1
        yield Block(page, line, match[1], match[2], mark[1] if mark else "")


class Reader:
    """Someone at a shell in a directory, with transept installed.

    Commands of transept are started by `starter.py`, which listens on the socket `starter`. Only
    servers have processes that are started by the shell, because signals end them.
    """

    def __init__(self, directory: Path, starter: Path) -> None:
        self.directory = directory
        self.bin = directory / ".bin"
        self.bin.mkdir(parents=True, exist_ok=True)
        client = self.bin / "client.py"
        client.write_text(CLIENT)
        self._command("python", f'exec "{sys.executable}" "$@"')
        self._command(
            "transept",
            f'test "$1" = serve && exec "{sys.executable}" -m transept "$@"\n'
            f'exec "{sys.executable}" -IS "{client}" "{starter}" "$@"',
        )

    def _command(self, name: str, line: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return ENVIRONMENT | {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.bin / "cache"),
        }

    def arguments(self, block: Block, text: str) -> list[str]:
        if block.language == "python":
            return [str(self.bin / "python"), "-W", "error", "-c", text]
        return ["bash", "-euo", "pipefail", "-c", text]

    def run(self, block: Block, text: str | None = None) -> str:
        """Run a block to its end; what it printed."""
        done = subprocess.run(
            self.arguments(block, text or block.text),
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block.name} failed:\n{done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, page: Path) -> list[str]:
        """Run all blocks of a page that run, in order."""
        return [self.run(block) for block in blocks_of(page) if block.runs]
