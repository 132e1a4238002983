"""Commands on several ranks without torchrun: `on_ranks`, which runs this file as a script.

    python -m tests.integration.ranks RANKS ARGUMENTS... [-- RANKS ARGUMENTS...]...

0 ranks are a process by itself.
"""

import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.integration.workshop import Workshop

from transept.cli.app import main


def train(workshop: Workshop, *jobs: tuple[int, Path, tuple[str, ...]]) -> None:
    """Run training jobs one after the other, each on a number of ranks; 0 is a single process."""
    words: list[str] = []
    for ranks, output, overrides in jobs:
        command = ["train", str(workshop.config), *overrides, "--output", str(output)]
        words += [*(["--"] if words else []), str(ranks), *command, "--allow-change"]
    result = on_ranks(*words)
    assert result.returncode == 0, result.stderr


def on_ranks(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command on several ranks: their number, and the command's words."""
    return subprocess.run(
        [sys.executable, "-m", "tests.integration.ranks", *words],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


if __name__ == "__main__":
    import torch
    from tests.forks import by_itself, in_ranks

    import transept.assembly  # noqa: F401  (so that no rank needs to)

    torch.set_num_threads(1)
    words = sys.argv[1:]
    while words:
        end = words.index("--") if "--" in words else len(words)
        (ranks, *arguments), words = words[:end], words[end + 1 :]
        work = partial(main, arguments)
        in_ranks(int(ranks), work) if int(ranks) else by_itself(work)
