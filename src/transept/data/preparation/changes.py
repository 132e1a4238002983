"""In what two preparations differ, in the words of the command line."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from transept import config
from transept.data.shards import SIDES, STREAM, InputRecord, Settings

OPTIONS: Final[Mapping[str, str]] = {
    "tsv": "--columns",
    "jsonl": "--keys",
    "tmx": "--languages",
    "trees": "--tags",
}
"""The option that says how files of a format are read."""


def changes(before: Settings, now: Settings) -> list[str]:
    """A line for each option that is not what it was before."""
    old, new = dict(_words(before)), dict(_words(now))
    return [
        f"{key}: {_short(old.get(key, 'none'))} -> {_short(new.get(key, 'none'))}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]


def _words(settings: Settings) -> Iterator[tuple[str, Any]]:
    for number, each in enumerate(settings.inputs, start=1):
        yield f"input {number}", _input(each)
    yield "--tokenizer", settings.source_tokenizer
    if settings.target_tokenizer != settings.source_tokenizer:
        yield "--target-tokenizer", settings.target_tokenizer
    for key, value in config.as_table(settings.cleaning).items():
        yield f"--{key.replace('_', '-')}", value


def _short(value: Any) -> str:
    """A value as text; of a sha256, the beginning."""
    return re.sub(r"^([0-9a-f]{12})[0-9a-f]{52}$", r"\1…", str(value))


def _input(each: InputRecord) -> str:
    names = SIDES if each.format == "lines" else (each.format,)
    files = [
        f"--{name} {path}" + ("" if size == STREAM else f" ({size:,} bytes)")
        for name, path, size in zip(names, each.paths, each.bytes, strict=True)
    ]
    read_by = [OPTIONS[each.format], *each.options] if each.options else []
    return " ".join([*files, *read_by])
