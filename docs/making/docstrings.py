"""Docstrings in Google's style, as Markdown."""

import re
from inspect import cleandoc

SECTION = re.compile(r"^(Args|Raises|Returns|Yields|Example|Examples):$")
ENTRY = re.compile(r"^(\*{0,2}\w[\w, *]*?)(?: \([^)]*\))?: (.*)$")


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
    """`name: meaning`, the meaning perhaps over several lines; deeper ones below it."""
    entries: list[str] = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 4
        match = ENTRY.match(line.strip())
        # A line of a meaning that goes on is indented deeper than its name.
        if match and (depth == 0 or _is_option(line)):
            entries.append(f"{'  ' * depth}- `{match[1]}`: {match[2]}")
        elif entries and line.strip():
            entries[-1] += f" {line.strip()}"
        elif line.strip():
            entries.append(line.strip())
    return entries


def _is_option(line: str) -> bool:
    return re.match(r"^\s{4}\w+( \(.*?\)(, \w+ \(.*?\))*)?: ", line) is not None
