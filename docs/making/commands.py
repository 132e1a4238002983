"""The command reference: a page for each command, from the functions that implement them."""

import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cyclopts import App, Argument

from making.docstrings import to_markdown
from making.fields import cell, type_name
from transept.cli.app import app

INDEX = """# Commands

`make docs` writes these pages from the functions that implement the commands.
`transept COMMAND --help` prints the same text. `--debug` after any command prints the traceback of
an error. [Troubleshooting](../troubleshooting.md) explains error messages and exit codes."""


def write_commands(folder: Path) -> None:
    """A page for each command, and one that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[str]] = {}
    names = []
    for path, command in commands(app):
        name = "-".join(path)
        (folder / f"{name}.md").write_text(page(path, command), encoding="utf-8")
        title = _title(app[path[0]].group) or "Commands"
        row = f"| [`{' '.join(path)}`]({name}.md) | {cell(_with_code(_line(command)))} |"
        groups.setdefault(title, []).append(row)
        names.append(name)
    parts = [INDEX]
    for title, rows in groups.items():
        parts.append(f"## {title}\n\n| command | |\n|---|---|\n" + "\n".join(rows))
    parts.append("```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```")
    (folder / "index.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def page(path: tuple[str, ...], command: App) -> str:
    """What a command does, and its arguments by group."""
    arguments = command.assemble_argument_collection(parse_docstring=True)
    shown = [one for one in arguments if one.show]
    parts = [f"# transept {' '.join(path)}", _about(command), _usage(path, shown)]
    groups: dict[str, list[Argument]] = {}
    for argument in shown:
        groups.setdefault(_group(argument), []).append(argument)
    for title, members in groups.items():
        parts += [f"## {title}", _table(members)]
    return "\n\n".join(parts) + "\n"


def commands(parent: App, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    """Every command that runs, with its words; a family is only its members."""
    for name in parent:
        if name.startswith("-"):
            continue
        command, path = parent[name], (*above, name)
        if command.default_command is not None:
            yield path, command
        yield from commands(command, path)


def _line(command: App) -> str:
    return str(command.help or "")


def _about(command: App) -> str:
    """The docstring before its list of arguments, which the tables have."""
    docstring = inspect.getdoc(command.default_command) or _line(command)
    return _with_code(to_markdown(re.split(r"\n(?:Args|Returns|Raises):\n", docstring)[0].strip()))


def _with_code(text: str) -> str:
    """Options that a text names, as code; what is code already stays."""
    parts = re.split(r"(```.*?```|`[^`]*`)", text, flags=re.DOTALL)
    option = r"(?<![\w-])(--[a-z][a-z-]*[a-z])"
    return "".join(
        part if part.startswith("`") else re.sub(option, r"`\1`", part) for part in parts
    )


def _usage(path: Iterable[str], arguments: list[Argument]) -> str:
    positional = [one for one in arguments if one.index is not None and not _is_option(one)]
    words = ["transept", *path]
    for argument in positional:
        name = _names(argument)[0].upper().lstrip("-")
        words.append(name if argument.required else f"[{name}]")
        if "repeatable" in type_name(argument.hint):
            words[-1] += "..."
    if any(map(_is_option, arguments)):
        words.append("[OPTIONS]")
    return f"```text\n{' '.join(words)}\n```"


def _table(arguments: list[Argument]) -> str:
    rows = ["| argument | type | default | meaning |", "|---|---|---|---|"]
    for argument in arguments:
        names = ", ".join(f"`{name}`" for name in _names(argument))
        kind = "flag" if argument.hint is bool else type_name(argument.hint)
        meaning = cell(_with_code(str(argument.parameter.help or "")))
        rows.append(f"| {names} | {cell(kind)} | {_default(argument)} | {meaning} |")
    return "\n".join(rows)


def _names(argument: Argument) -> tuple[str, ...]:
    return tuple(argument.names)


def _is_option(argument: Argument) -> bool:
    return any(name.startswith("-") for name in argument.names)


def _title(groups: Any) -> str:
    """The name of the first of several groups, or of the only one."""
    first = groups[0] if isinstance(groups, tuple) and groups else groups
    return str(getattr(first, "name", "") or "")


def _group(argument: Argument) -> str:
    name = _title(argument.parameter.group) or "Options"
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return spaced[:1].upper() + spaced[1:].lower() if spaced != name else name


def _default(argument: Argument) -> str:
    """The default as a user would type it; empty if there is none or it is off."""
    if argument.required:
        return "required"
    value: Any = argument.field_info.default
    if value is inspect.Parameter.empty or value is None or value is False or value in ((), ""):
        return ""
    if value is True:
        return "on"
    shown = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{cell(shown)}`"
