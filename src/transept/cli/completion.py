"""`transept completion`: commands and options at the press of TAB."""

import re
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
    with_files = {"bash": _bash_with_files, "zsh": _zsh_with_files, "fish": _fish_with_files}
    sys.stdout.write(with_files[shell](app.generate_completion(shell=shell)))


# cyclopts completes files for the first value of an option that takes a Path, and nowhere else. But
# `--model` may name a directory, and `--input a b` two files.


def _bash_with_files(script: str) -> str:
    """Complete the name of a file wherever there is nothing else to complete."""
    return script.replace("complete -F ", "complete -o default -F ")


def _zsh_with_files(script: str) -> str:
    """Complete the names of files after `--model`, and for every argument that has no choices.

    An argument that zsh has a description of, and no way to complete, would also keep it from
    completing an option in that place.
    """
    script = script.replace(":model' \\", ":model:_files' \\")
    script = re.sub(
        r"^( *'(?:\d|\*):(?:[^:\\]|\\.)*)' \\$", r"\1:_files' \\", script, flags=re.MULTILINE
    )
    # What follows the first value of an option is an argument to zsh, and every command needs one.
    return re.sub(
        r"^( *)_arguments \\\n(?!(?:.*\\\n)*? *'\*:)",
        r"\g<0>\1  '*:file:_files' \\" + "\n",
        script,
        flags=re.MULTILINE,
    )


def _fish_with_files(script: str) -> str:
    """Complete no files where a command belongs: `recipe ru` is not to find the directory runs."""
    return re.sub(r" -a '[\w-]+' -d ", r" -f\g<0>", script)
