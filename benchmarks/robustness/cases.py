"""The cases of cases.toml, and their checks."""

import html
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from text_checks import (
    BAD,
    all_quotes,
    brackets,
    final_mark,
    has_loop,
    has_unbalanced_quotes,
    lost_numbers,
    share_of_capitals,
)

FILE = Path(__file__).with_name("cases.toml")
DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en")
MOSTLY = 0.75
"""The share of capitals in a text that is written in capitals."""
EVERY = 3
"""In HTML, every third case has a word in bold."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A text, and what must be true of its translation. cases.toml explains the checks."""

    id: str
    group: str
    direction: str
    source: str
    keeps: list[str] | None = None
    order: bool = False
    first: str | None = None
    last: str | None = None
    equals: str | None = None
    numbers: bool = False
    any_of: list[list[str]] | None = None
    ends: str | None = None
    quotes: str | None = None
    brackets: str | None = None
    caps: bool = False
    translated: list[str] | None = None
    max_ratio: float | None = None
    plain: bool = False
    """Whether it is not sent as HTML, in which asterisks and escaped tags are ordinary text."""


def load(file: Path = FILE) -> list[Case]:
    """All cases, in the order of the file."""
    groups = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Case(id=f"{group}.{name}.{key}", group=group, direction=name, **shared | entry)
        for group, tables in groups.items()
        for shared in [tables.pop("checks", {})]
        for name, entries in tables.items()
        for key, entry in entries.items()
    ]


def checked(case: Case, output: str) -> dict[str, bool]:
    """Whether the output passes each check that the case has."""
    results = {name: check(case, output) for name, check in ALWAYS.items()}
    wanted = (name for name in CHECKS if getattr(case, name))
    return results | {name: CHECKS[name](case, output) for name in wanted}


def _keeps(case: Case, output: str) -> bool:
    return all(_is_kept(text, case.source, output) for text in case.keeps or ())


def _is_kept(text: str, source: str, output: str) -> bool:
    """Whether the output has a string as often as the source, not joined to other words."""
    escaped = re.escape(text)
    if len(re.findall(escaped, output)) != len(re.findall(escaped, source)):
        return False
    sides = (rf"[\w/@#&=]{escaped}", rf"{escaped}[\w/@#&=]")
    return all(re.search(side, source) or not re.search(side, output) for side in sides)


def _order(case: Case, output: str) -> bool:
    keeps = sorted(case.keeps or (), key=case.source.index)
    places = [output.find(text) for text in keeps]
    return -1 not in places and places == sorted(places)


def _last(case: Case, output: str) -> bool:
    return bool(re.search(rf"{re.escape(case.last or '')}[\s.!?…:;,)\]\"'“”’»«]*\Z", output))


def _any_of(case: Case, output: str) -> bool:
    return all(any(_occurs(text, output) for text in group) for group in case.any_of or ())


def _occurs(text: str, output: str) -> bool:
    """Whether a string occurs that is not the end of a longer word or a part of a number."""
    start = r"(?<![^\W_])" if text[0].isalnum() else ""
    end = r"(?!\d)" if text[-1].isdigit() else ""
    return bool(re.search(start + re.escape(text) + end, output, re.IGNORECASE))


def _quotes(case: Case, output: str) -> bool:
    became_unbalanced = has_unbalanced_quotes(output) and not has_unbalanced_quotes(case.source)
    return all_quotes(output) == all_quotes(case.source) and not became_unbalanced


def _caps(case: Case, output: str) -> bool:
    for text in case.keeps or ():
        output = output.replace(text, "")
    return share_of_capitals(output) >= MOSTLY


def _translated(case: Case, output: str) -> bool:
    return not any(_occurs(word, output) for word in case.translated or ())


Check = Callable[[Case, str], bool]
CHECKS: dict[str, Check] = {
    "keeps": _keeps,
    "order": _order,
    "first": lambda case, output: output.startswith(case.first or ""),
    "last": _last,
    "equals": lambda case, output: output == case.equals,
    "numbers": lambda case, output: not lost_numbers(case.source, output, case.direction),
    "any_of": _any_of,
    "ends": lambda case, output: final_mark(output) == final_mark(case.source),
    "quotes": _quotes,
    "brackets": lambda case, output: brackets(output) == brackets(case.source),
    "caps": _caps,
    "translated": _translated,
    "max_ratio": lambda case, output: len(output) <= (case.max_ratio or 0) * len(case.source),
}
"""The checks that a case may have, by the names of its fields."""
ALWAYS: dict[str, Check] = {
    "characters": lambda _, output: not BAD.intersection(output),
    "loops": lambda case, output: not has_loop(case.source, output),
    "lines": lambda case, output: output.count("\n") == case.source.count("\n"),
    "empty": lambda case, output: bool(output.strip()) == bool(case.source.strip()),
}
"""The checks of every case."""


def in_html(cases: list[Case]) -> Iterator[tuple[Case, str]]:
    """Each case as HTML, where white space is one space, and the HTML to translate."""
    for number, case in enumerate(one for one in cases if not one.plain):
        text = html.escape(case.source, quote=False)
        case = replace(
            case,
            source=_flat(case.source).strip(),
            keeps=[_flat(kept).strip() for kept in case.keeps or ()],
            first=_flat(case.first or "").lstrip(),
            equals=None if case.equals is None else _flat(case.equals).strip(),
            any_of=[[*map(_flat, group)] for group in case.any_of or ()],
        )
        if number % EVERY == 0:
            text = re.sub(r"(?<![^\s])([^\W\d_]{4,})(?![^\s])", r"<b>\1</b>", text, count=1)
        yield case, f"<p>{text}</p>"


def checked_html(case: Case, sent: str, received: str) -> tuple[str, dict[str, bool]]:
    """The text of an answer in HTML, and whether it passes each check."""
    tags = [re.findall("</?[bp]>", text) for text in (sent, received)]
    text = _flat(html.unescape(re.sub("</?[bp]>", "", received))).strip()
    return text, checked(case, text) | {"markup": Counter(tags[0]) == Counter(tags[1])}


def _flat(text: str) -> str:
    return re.sub(r"[ \t\n\r]+", " ", text)
