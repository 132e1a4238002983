"""`transept completion`: commands and options at the press of TAB."""

import sys
from typing import Literal

from transept.cli.app import app


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a script that completes commands and options at TAB.

    `eval "$(transept completion bash)"` runs it in the bash that you are in. To have it in every
    new shell, write it to a file: for bash `~/.local/share/bash-completion/completions/transept`,
    for zsh `_cyclopts_transept` in a directory of its `$fpath`, for fish
    `~/.config/fish/completions/transept.fish`. The script itself lists all commands, so that TAB
    does not wait for Python; after an update of transept, write it again.

    Args:
        shell: The shell to write it for.
    """
    sys.stdout.write(app.generate_completion(shell=shell))
