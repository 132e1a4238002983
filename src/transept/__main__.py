"""The command `transept`, `python -m transept` and `torchrun -m transept`."""

import sys
from typing import NoReturn

INTERRUPTED = 130
"""128 plus the number of SIGINT, as in a shell."""


def main() -> NoReturn:
    """Run one command. Ctrl-C is handled even during the first imports."""
    try:
        from transept.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("transept: stopped.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
