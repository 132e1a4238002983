"""`transept completion`: commands and options at the press of TAB."""

import sys
from typing import Literal

from transept.cli.app import app

FILES_IN_BASH = "complete -o default -F _transept transept\n"
"""Makes bash complete the name of a file wherever the script has nothing to complete."""


def completion(shell: Literal["bash", "fish"], /) -> None:
    """Print a script that completes commands and options at TAB.

    `eval "$(transept completion bash)"` loads it in the current bash. To have it in every new
    shell, write it to a file: for bash `~/.local/share/bash-completion/completions/transept`, for
    fish `~/.config/fish/completions/transept.fish`. The script itself lists all commands, so that
    TAB does not wait for Python; after an update of transept, write it again.

    Args:
        shell: The shell to write it for.
    """
    script = app.generate_completion(shell=shell)
    sys.stdout.write(script + (FILES_IN_BASH if shell == "bash" else ""))
