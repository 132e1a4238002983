"""The command `transept`, also as `python -m transept`, and so `torchrun -m transept`."""

import sys
from typing import NoReturn

INTERRUPTED = 130
"""128 and the number of SIGINT, as a shell tells it."""


def main() -> NoReturn:
    """Run one command, and hear Ctrl-C from the first import on."""
    try:
        from transept.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("transept: stopped.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
