"""Finds the parts of a sentence that must not be translated: addresses, code, figures, emoji."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from transept.text.french import FRENCH
from transept.text.numbers import (
    ANY_MONTH,
    amount,
    clock_time,
    day_of_month,
    duration,
    number,
    whole_hour,
)
from transept.text.spoken import MAY_BE_SPOKEN, SPOKEN, spoken_time

MASKS: Final = tuple(map(chr, range(0xF2590, 0xF2598)))
"""Private-use characters that stand for protected spans."""
LATIN: Final = frozenset({
    "ca", "cs", "da", "de", "en", "eo", "es", "et", "fi", "fr", "hu", "id", "it", "lt", "lv", "nb",
    "nl", "pl", "pt", "ro", "sk", "sl", "sv", "tr", "vi",
})  # fmt: skip
"""Languages in Latin script. Between them, text in another script is protected."""

# Characters that are rare in training data. Arrows and other characters of ordinary text are not
# included. Variation selectors, joiners and the tag characters of flags may follow.
EMOJI: Final = (
    "(?:[0-9#*]\ufe0f?\u20e3"  # a keycap
    "|[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
    "[\u200d\u20e3\ufe0e\ufe0f\U000e0020-\U000e007f]*)+"
)
_ENDINGS = (
    "avi bak bat bin bmp bz2 cfg conf cpp css csv dat deb dll doc docx epub exe flac gif gz html? "
    "ini iso jar java jpe?g js json jsx log lua md mkv mp3 mp4 odp ods odt ogg pdf php png po "
    "pptx? ps1 py rar rb rs rst rtf sh so sql srt svg tar tex tgz tiff? toml ts tsx txt vtt wav "
    "webm webp woff2? xlsx? xml xz ya?ml zip zst"
).replace(" ", "|")
_DOMAINS = "com|org|net|edu|gov|info|io|dev|app|eu|de|at|ch|fr|uk|us|nl|be|it|es|pl|cz|example|test"
_REST = r"[^\s<>\"“”„«»`]"
_FIGURE = r"(?:\d{1,3}(?:[.,'’\u202f]\d{3})+(?:[.,]\d+)?|\d+[.,]\d+|\d{5,})"
_FRENCH_FIGURE = _FIGURE.replace(r"\u202f]", r"\u202f\x20]", 1)
_FIGURE_END = r"(?!\w|[.,]\d)"
_NOT_LARGE = r"(?!\s?(?:[mb]illion|M[ir]|[mb]n\b|k\b))"
# The full stop of `6 p.m.` is not part of the time at the end of a sentence.
_HALF = r"\s?(?:[ap]m\b|[ap]\.m\b(?:\.(?!\s*\Z))?)"
_MONTH = f"(?:{ANY_MONTH})"
_YEAR = r"(?:,?\s\d{4}(?!\d))?"
_OTHER_SCRIPT = "[\u0370-\u1cff\u2e80-\ud7ff\uf900-\ufaff]+"
_RUN = f"[^\\s{_OTHER_SCRIPT[1:-2]}]"

# The first alternative that matches at a position wins, so specific kinds come first.
_KINDS: Final = {
    "mask": f"[{MASKS[0]}-{MASKS[-1]}]",
    # Not a word of any language. Other patterns would take n² steps, or more, for n characters.
    # Some other scripts are written without spaces.
    "run": rf"{_RUN}{{1000,}}",
    "code": r"`+[^`\n]+`+",
    "slot": r"""\{\{[^{}\n]*\}\} | \$\{[^{}\n]*\} | \$\([\w.]+\) | \{[\w.:!,\s-]{0,40}\}
        | %\([\w.]+\)[#0+-]*\d*(?:\.\d+)?[a-zA-Z]
        | (?:\\[nrt](?![a-z]))+(?:%(?:l?[dfgirsuxXcp]|@)(?![\w%]))?
        | (?<![\w%])[A-Za-z_]*%(?:\d+\$)?[#0+-]*\d*(?:\.\d+)?(?:l?[dfgirsuxXcp]|@)
            (?:ms|px|[kMG]?B|[hmsx])?(?![\w%])
        | %\d+(?!\d|\s?%) | (?<!%)%%(?!%) | \[\[[^][\n]*\]\] | (?<!\w)__[A-Za-z]\w*__(?!\w)""",
    "tag": r"</?[A-Za-z\d][^<>\n]*> | &[a-z]+; | &\#\d+;",
    "url": rf"""(?:(?:https?|ftps?|file|ssh|git|wss?|s3)://
        |(?:mailto|tel|data|urn|doi):(?=\S)|www\.){_REST}+""",
    # As in j.o'neil@example.org. Other apostrophes may be quotation marks or elisions.
    "mail": r"(?:[\w.+%-]|(?<=\b[oO])')+@(?:[\w-]+\.)+[A-Za-z]{2,}",
    "site": rf"""(?<![\w@./-])(?:[a-z\d](?:[\w-]*[a-z\d])?\.)+(?:{_DOMAINS})
        (?::\d+)?(?:/{_REST}*)?(?![\w-])""",
    "handle": r"(?<![\w@/.])@[A-Za-z_](?:[\w./-]*\w)?",
    "hashtag": r"(?<![\w#/&])\#\w+(?:-\w+)*",
    "emoji": EMOJI,
    "windows path": r"(?<!\w)(?:[A-Za-z]:\\|\\\\)[^\s<>\"|?*,;]*[^\s<>\"|?*,;.:)]",
    "path": r"""(?<![\w/<.:])(?:~|\.{1,2})?(?:/[\w.@+%*~-]+)+/?(?<![.])
        | (?<![\w/.])[\w.@+-]+(?:/[\w.@+-]+){2,}/?(?<![.])(?=[\s,;:.!?)\]]|$)""",
    "file": rf"""(?<![\w/.-])(?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:{_ENDINGS})(?![\w-])
        | (?<![\w.])\.[a-z]\w{{2,}}(?!\w)""",
    "rule": r"(?<!\S)(?:-{3,}|={3,}|_{3,}|\#{3,})(?!\S)",
    "requirement": r"(?<![\w.])[\w-]+(?:==|>=|<=|~=)[\w.]*\w",
    "name in code": r"""(?<![\w.])(?:\w+\.)*\w+\(\) | (?<![\w.])[A-Za-z]\w*_\w+(?!\w)
        | (?<!\w)_\w+(?!\w) | (?<![\w.])[a-z]+(?:[A-Z][a-z]+)+(?!\w)""",
    "option": r"(?<![\w-])--[a-z][\w-]*(?:=[\w./-]+)?",
    "date": r"""(?<![\w.-])(?:\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?|\d{1,2}/\d{1,2}/\d{2,4}
        | \d{1,2}\.\d{1,2}\.\d{4})(?![\w-])""",
    "version": r"""(?<![\w.])(?:v\d+(?:\.\d+)*|\d+(?:\.\d+){2,})
        (?:-?(?:alpha|beta|rc|dev|post)[.\d]*|[-+][\w.]*\w)?(?!\w)""",
    "address": r"(?<![\w:])(?:[\dA-Fa-f]{1,4}:){3,7}[\dA-Fa-f:]+(?![\w:])",
    "account": r"(?<!\w)[A-Z]{2}\d{2}(?:\s?[\dA-Z]{4}){3,7}(?:\s?\d{1,3})?(?!\w)",
    "uuid": r"(?<![\w-])[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}(?![\w-])",
    "digits": r"(?<![\w-])\d+(?:-\d+){2,}(?:-X)?(?![\w-])",
    "key": r"(?<!\S)(?=\S*[A-Za-z])(?=\S*\d)[A-Za-z\d+/=_-]{20,}(?=[\s.,;:!?)]|$)",
    "time": rf"""(?<![\w:.])(?:\d{{1,2}}[:.]\d\d(?::\d\d)?(?:{_HALF}|\s?Uhr\b)
        | \d{{1,2}}{_HALF} | \d{{1,2}}:\d\d(?::\d\d)?(?![\w:])
        | \d{{1,2}}\s?h\s?\d\d(?!\w))""",
    "phone": r"(?<![\w+])(?:\+\d|\(\+?\d|00\d|0\d)(?:\(\d+\)|[\d\s)/-]){5,}\d(?!\w)",
    "amount": rf"""(?<!\w)[$€£¥]\s?{_FIGURE}{_FIGURE_END}{_NOT_LARGE}
        | (?<![\w.,]){_FIGURE}\s?[$€£¥](?!\w)""",
    "identifier": r"""(?<![\w-])(?=[\w-]*\d[\w-]*\d)(?=[\d-]*[A-Za-z_])(?:[A-Z\d]+(?:[-_][A-Z\d]+)+
        | (?=[a-f\d]*[a-f])[a-f\d]{7,40} | [A-Za-z]+\d{3,}\w* | \d+[A-Z]+\d\w*)(?!\w)""",
    "script": rf"{_OTHER_SCRIPT}(?:[ \u3000]{_OTHER_SCRIPT})*",
    "number": rf"(?<![\w.,])[-+±]?{_FIGURE}(?:[-/]\d+)*{_FIGURE_END}",
}
_HOUR = r"(?:1?\d|2[0-4])\s?h"
_AT_HOUR = (
    r"(?i:(?<=\bà\s)|(?<=\bvers\s)|(?<=\bavant\s)|(?<=\bdès\s)|(?<=\bentre\s)|(?<=h\set\s)"
    r"|(?<=h\s[-–]\s)|(?<=h[-–]))"
)
_TO_FRENCH: Final = {
    "small amount": rf"(?<!\w)[$€£¥]\s?\d+{_FIGURE_END}{_NOT_LARGE}",
    "spoken time": SPOKEN["en"],
}
_FROM_FRENCH: Final = {
    "small amount": r"(?<![\w.,])\d+\s?[$€£¥](?:\d\d)?(?!\w)",
    "spoken time": SPOKEN["fr"],
    "whole hour": rf"""{_AT_HOUR}{_HOUR}(?!\w|\s\d|\s(?:de|d')\b)
        | (?<![\w.,:]){_HOUR}(?=(?:\s(?:à|et)\s|\s?[-–]\s?){_HOUR})""",
    "hours": r"(?<=\s)\d{1,2}\s?h(?!\w|\s\d)",
}
"""What a model writes well in German, but not in French: the sign changes its place, and the recipe
of German has times of day."""
_LOOSE: Final = {
    "day": rf"""(?<![\w.,/–-])(?:{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?{_YEAR}(?![\w/–-])
        | (?:the\s)?\d{{1,2}}(?:\.|st|nd|rd|th|er)?(?:\sof)?\s{_MONTH}{_YEAR}(?!\w))""",
    "small number": r"(?<![\w.,])\d+(?![\d.,]*\d|\w{3})",
}
"""Figures that a model mostly translates well, and better than it copies a symbol for them."""
_NAMES = (*_KINDS, *{**_TO_FRENCH, **_FROM_FRENCH}, *_LOOSE)


@cache
def _pattern(*, from_french: bool, to_french: bool, all_figures: bool) -> re.Pattern[str]:
    """The pattern of spans. Only French separates thousands by spaces."""
    french = _TO_FRENCH if to_french else _FROM_FRENCH if from_french else {}
    kinds = _KINDS | french | (_LOOSE if all_figures else {})
    pattern = "|".join(f"(?P<k{_NAMES.index(name)}>{kind})" for name, kind in kinds.items())
    if from_french:
        pattern = pattern.replace(_FIGURE, _FRENCH_FIGURE)
    return re.compile(pattern, re.VERBOSE)


# Matches somewhere in every text with a span, and is ten times as fast as the pattern.
_HINT = re.compile(
    r"[\d@#/<>{`%\\&$€£¥\[]|--|\w_|_\w|[a-z][A-Z]|\w\.\w|\w:\S|(?<!\S)\.\w|==|\(\)"
    r"|[\u0370-\u1cff\u2300-\U0010ffff]"
    rf"|{_RUN}{{1000}}"
)
_TRIMMED = frozenset({"url", "site", "path", "windows path"})
_TRAILING = ".,;:!?…'’\"*_~"
_OPENING = {")": "(", "]": "[", "}": "{"}
_ONE_CHARACTER = frozenset({"mask", "emoji", "script", "small number"})
_CONVERT: Final[dict[str, Callable[[str, str, str], str]]] = {
    "number": number,
    "amount": amount,
    "small amount": amount,
    "time": clock_time,
    "spoken time": spoken_time,
    "duration": duration,
    "whole hour": whole_hour,
    "hours": lambda *_: "",  # a time or a duration, unless a word before it decides
    "day": day_of_month,
}
FIGURES: Final = frozenset({*_CONVERT, "date", "small number"})
# French writes `2 h 30` for a time and for a duration.
_DURING = re.compile(
    r"\b(?:pendant|durant|dur(?:e|ent|ait|é|era)|en|faut|prend|(?:plus|moins|durée) de)\s\Z", re.I
)
# `Python 3.11 is` has a version: a name within the sentence precedes it, and it counts nothing.
_AFTER_NAME = re.compile(r"\S\s+[A-Z][\w+#-]*\s\Z")
_NOT_COUNTED = re.compile(
    r"[.,;:!?)]|\Z|\s(?:and|or|is|was|are|has|with|for|to|on|in|as|by|will|can|does)\b"
)


class Protected(NamedTuple):
    """A span of a sentence, its form in the translation, and its kind."""

    start: int
    end: int
    target: str
    kind: str

    @property
    def is_figure(self) -> bool:
        """Whether it is a number, an amount, a time or a date."""
        return self.kind in FIGURES


def protected(
    text: str, source: str = "", target: str = "", *, all_figures: bool = False
) -> Iterator[Protected]:
    """Yield the protected spans of a sentence, from left to right.

    Numbers are written as in the target language, if both languages are known. With `all_figures`,
    also dates with the name of a month, and all other numbers.

    Example:
        >>> [span.target for span in protected("See https://example.org/a?b=1, v2.3.1.")]
        ['https://example.org/a?b=1', 'v2.3.1']
        >>> [span.target for span in protected("$12,345.67", "en", "de")]
        ['12.345,67 $']
    """
    french = FRENCH in (source, target)
    if not _HINT.search(text) and not (french and MAY_BE_SPOKEN.search(text)):
        return
    latin = source in LATIN and target in LATIN
    pattern = _pattern(
        from_french=source == FRENCH, to_french=target == FRENCH, all_figures=all_figures
    )
    for found in pattern.finditer(text):
        kind = _kind(found)
        end = found.start() + len(_trimmed(found[0]) if kind in _TRIMMED else found[0])
        span = text[found.start() : end]
        form = _CONVERT[kind](span, source, target) if kind in _CONVERT else span
        is_long = len(span) > 1 or kind in _ONE_CHARACTER
        if form and is_long and (kind != "script" or latin):
            yield Protected(found.start(), end, form, kind)


def _kind(found: re.Match[str]) -> str:
    kind = _NAMES[int((found.lastgroup or "")[1:])]
    if kind in ("time", "hours") and _DURING.search(found.string, 0, found.start()):
        return "duration"
    if kind != "number" or not _AFTER_NAME.search(found.string, 0, found.start()):
        return kind
    return "version" if _NOT_COUNTED.match(found.string, found.end()) else kind


def _trimmed(span: str) -> str:
    """A URL or path without the punctuation after it."""
    last = span[-1:]
    unopened = last in _OPENING and span.count(last) > span.count(_OPENING[last])
    return _trimmed(span[:-1]) if last and (last in _TRAILING or unopened) else span
