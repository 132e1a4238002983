"""`transept completion`: commands and options at the press of TAB."""

import sys
from typing import Literal

from transept.cli.app import app


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print what lets a shell complete commands, options and files.

    `eval "$(transept completion bash)"` does so in the bash that you are in. For later ones, write
    it to `~/.local/share/bash-completion/completions/transept`; for zsh, to `_cyclopts_transept`
    in a directory of its `$fpath`; for fish, to `~/.config/fish/completions/transept.fish`. It
    holds every command, so that TAB does not wait for Python; after an update, write it anew.

    Args:
        shell: Which.
    """
    sys.stdout.write(app.generate_completion(shell=shell))
