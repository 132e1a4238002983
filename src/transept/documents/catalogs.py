"""Catalogs of gettext (.po): messages without a translation get one. The rest stays."""

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FIELD = re.compile(
    r"""^(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]+
    (?P<value>"(?:[^"\\\n]|\\.)*+"[ \t]*(?:\r?\n[ \t]*"(?:[^"\\\n]|\\.)*+"[ \t]*)*)""",
    re.MULTILINE | re.VERBOSE,
)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNESCAPED = {ord(character): f"\\{name}" for name, character in _ESCAPES.items()} | {
    ord("\\"): "\\\\",
    ord('"'): '\\"',
}
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|&(?:[a-zA-Z]+|#\d+);")
_ACCESS_KEY = re.compile(r"(?<![\w&])[_&](?=[A-Za-z])")
_BREAK = '<br id="0">'


class _Slot(NamedTuple):
    """An empty translation, and the message that it is for."""

    start: int
    end: int
    message: str


class Catalog:
    """The messages of a file that have no translation."""

    def __init__(self, document: str) -> None:
        self._document = document
        self._slots = [*_slots(document)]
        self.texts = [_as_html(slot.message) for slot in self._slots]
        """The messages as HTML."""

    def translated(self, texts: Sequence[str]) -> str:
        """The file with the translation of each text."""
        parts, at = list[str](), 0
        for slot, text in zip(self._slots, texts, strict=True):
            parts += self._document[at : slot.start], _quoted(_from_html(text, slot.message))
            at = slot.end
        return "".join([*parts, self._document[at:]])


def _slots(document: str) -> Iterator[_Slot]:
    message = plural = ""
    for found in _FIELD.finditer(document):
        key, value = found["key"], _unquoted(found["value"])
        if key == "msgid":
            message, plural = value, ""
        elif key == "msgid_plural":
            plural = value
        elif key.startswith("msgstr") and message and not value:
            # The first form is the singular, except in a language with a single form.
            is_only = key == "msgstr[0]" and "msgstr[1]" not in document
            is_plural = plural and (key != "msgstr[0]" or is_only)
            yield _Slot(*found.span("value"), plural if is_plural else message)


def _unquoted(value: str) -> str:
    joined = "".join(_STRING.findall(value))
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), joined)


def _quoted(text: str) -> str:
    lines = [f'"{line.translate(_UNESCAPED)}"' for line in text.splitlines(keepends=True)]
    return "\n".join(['""', *lines] if len(lines) > 1 else lines or ['""'])


def _as_html(message: str) -> str:
    text = message if _MARKUP.search(message) else html.escape(_without_key(message), quote=False)
    return text.replace("\n", _BREAK)


def _from_html(text: str, message: str) -> str:
    text = text.replace(_BREAK, "\n")
    if _MARKUP.search(message):
        return text
    keys = _ACCESS_KEY.findall(message)
    return (keys[0] if len(keys) == 1 else "") + html.unescape(text)


def _without_key(message: str) -> str:
    """The message without the mark of the key that selects a menu item: `_Open`, `&Open`."""
    return _ACCESS_KEY.sub("", message) if len(_ACCESS_KEY.findall(message)) == 1 else message
