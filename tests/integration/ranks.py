"""`transept train` on several ranks, without torchrun: run as a script by `test_ranks_cli.py`.

    python -m tests.integration.ranks RANKS ARGUMENTS... [-- RANKS ARGUMENTS...]...

0 ranks are a process by itself.
"""

import sys
from functools import partial

from tests.forks import by_itself, in_ranks

from transept.cli.app import main

if __name__ == "__main__":
    import torch

    import transept.assembly  # noqa: F401  (so that no rank needs to)

    torch.set_num_threads(1)
    words = sys.argv[1:]
    while words:
        end = words.index("--") if "--" in words else len(words)
        (ranks, *arguments), words = words[:end], words[end + 1 :]
        work = partial(main, arguments)
        in_ranks(int(ranks), work) if int(ranks) else by_itself(work)
