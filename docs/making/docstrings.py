"""Docstrings in Google's style, as Markdown."""

import re
from inspect import cleandoc

SECTION = re.compile(r"^(Args|Raises|Returns|Yields|Example|Examples):$")
NAME = r"\*{0,2}\w+(?: \([^)]*\))?"
ENTRY = re.compile(rf"^({NAME}(?:, {NAME})*): (.*)$")
"""`name: meaning`, `name (default): meaning`, or several names with one meaning."""


def to_markdown(docstring: str) -> str:
    """The text as it is, sections as lists, examples as blocks of code."""
    parts: list[str] = []
    section, body = "", list[str]()

    def close() -> None:
        parts.append(_section(section, cleandoc("\n".join(["", *body])).splitlines()))

    for line in cleandoc(docstring).splitlines():
        if match := SECTION.match(line):
            close()
            section, body = match[1], []
        elif section and line and not line.startswith(" "):
            close()
            section, body = "", [line]
        else:
            body.append(line)
    close()
    return "\n\n".join(part for part in parts if part)


def _section(name: str, lines: list[str]) -> str:
    if name.startswith("Example"):
        return _example(lines)
    if not name:
        return "\n".join(_plain(lines))
    return f"**{name}**\n\n" + "\n".join(_entries(lines))


def _example(lines: list[str]) -> str:
    code = "\n".join(re.sub(r" +# doctest: .*$", "", line) for line in lines)
    return f"```pycon\n{code.strip()}\n```"


def _plain(lines: list[str]) -> list[str]:
    """Paragraphs, in which an indented block is code: a drawing, or a table by hand."""
    text = "\n".join(lines)
    blocks = re.split(r"\n\s*\n", text)
    shown = [f"```text\n{block}\n```" if block.startswith("    ") else block for block in blocks]
    return ["\n\n".join(shown)]


def _entries(lines: list[str]) -> list[str]:
    """A list, in which what a meaning takes more than one line for is put together."""
    entries: list[str] = []
    for line in lines:
        depth, said = (len(line) - len(line.lstrip())) // 4, line.strip()
        match = ENTRY.match(said)
        if match and depth <= 1:
            names = re.sub(r"\*{0,2}\b[a-z_]\w*\b(?![^(]*\))", r"`\g<0>`", match[1])
            entries.append(f"{'  ' * depth}- {names}: {match[2]}")
        elif entries and said:
            entries[-1] += f" {said}"
        elif said:
            entries.append(said)
    return entries
