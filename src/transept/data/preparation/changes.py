"""The differences between two preparations, as parts of an error message."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from transept import config
from transept.data.shards import SIDES, STREAM, InputRecord, Settings
from transept.errors import Argument

Parts = tuple[str | Argument, ...]

READ_BY: Final[Mapping[str, str]] = {
    "tsv": "columns",
    "jsonl": "keys",
    "tmx": "languages",
    "trees": "tags",
}
"""The argument that controls how files of a format are read."""


def changes(before: Settings, now: Settings) -> Parts:
    """Return one line per changed setting; empty if nothing changed."""
    old, new = dict(_described(before)), dict(_described(now))
    parts: list[str | Argument] = []
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            values = (_shown(settings.get(key, "none")) for settings in (old, new))
            parts += ["\n  ", key, ": ", *next(values), " -> ", *next(values)]
    return tuple(parts)


def _described(settings: Settings) -> Iterator[tuple[str | Argument, Any]]:
    for number, each in enumerate(settings.inputs, start=1):
        yield f"input {number}", _input(each)
    yield Argument("tokenizer"), settings.source_tokenizer
    if settings.target_tokenizer != settings.source_tokenizer:
        yield Argument("target_tokenizer"), settings.target_tokenizer
    for prefix, part in (
        ("", settings.cleaning),
        ("", settings.sampling),
        ("vary.", settings.variation),
    ):
        for key, value in ({} if part is None else config.as_table(part)).items():
            yield Argument(prefix + key), value
    if settings.languages is not None:
        yield Argument("languages"), " ".join(settings.languages)


def _shown(value: Any) -> Parts:
    """Return a value as text, with a sha256 shortened."""
    if isinstance(value, tuple):
        return value
    return (re.sub(r"^([0-9a-f]{12})[0-9a-f]{52}$", r"\1…", str(value)),)


def _input(each: InputRecord) -> Parts:
    names = SIDES if each.format == "lines" else (each.format,)
    parts: list[str | Argument] = []
    for name, path, size in zip(names, each.paths, each.bytes, strict=True):
        known = "" if size == STREAM else f" ({size:,} bytes)"
        parts += [" ", Argument(name), f" {path}{known}"]
    if each.options:
        parts += [" ", Argument(READ_BY[each.format]), " ", " ".join(each.options)]
    return tuple(parts[1:])
