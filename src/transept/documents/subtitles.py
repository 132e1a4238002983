"""Subtitles: SubRip (.srt) and WebVTT (.vtt). The times and the settings of each cue stay."""

import html
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from transept.documents.tags import Name, marks, tag

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s<>./]*|\d\d:)[^<>\n]*>|\{\\[^{}\n]*\}")
_WORD = re.compile(r"(?:<[^<>]*>|\S)+")
_ENDINGS = (*'.!?…:;"”“»', "")
MOST_CUES = 4
"""The maximum number of cues that are translated together."""
_AROUND = frozenset({"b", "i", "u", "s", "c", "font", "lang", "ruby"})


class Subtitles:
    """The cues of a file. A sentence may continue in the next cues: together they are one text."""

    def __init__(self, document: str, format: Literal["srt", "vtt"]) -> None:
        self._parts: list[str | _Cue] = []
        self._groups: list[list[_Cue]] = []
        for text, is_cue in _blocks(document):
            if not is_cue:
                self._parts.append(text)
                continue
            cue = _Cue(text, is_escaped=format == "vtt")
            if self._groups and cue.continues(self._groups[-1]):
                self._groups[-1].append(cue)
            else:
                self._groups.append([cue])
            self._parts.append(cue)
        self.texts = [" ".join(cue.html for cue in group) for group in self._groups]
        """The texts as HTML."""

    def translated(self, texts: Sequence[str]) -> str:
        """The file with the translation of each text."""
        cues: list[str] = []
        for group, text in zip(self._groups, texts, strict=True):
            shares = [text]
            if text == " ".join(cue.html for cue in group):
                shares = [cue.html for cue in group]
            elif len(group) > 1:
                shares = _distributed(text, [len(cue.html) for cue in group])
            cues += (cue.written(share) for cue, share in zip(group, shares, strict=True))
        each = iter(cues)
        return "".join(part if isinstance(part, str) else next(each) for part in self._parts)


def _blocks(document: str) -> Iterator[tuple[str, bool]]:
    """The text of each cue, and everything else. The text is between the times and a blank line."""
    block: list[str] = []
    is_cue = False
    for line in document.splitlines(keepends=True):
        ends = is_cue and not line.strip()
        if ends:
            yield "".join(block), True
            block, is_cue = [], False
        block.append(line)
        if "-->" in line and not is_cue:
            yield "".join(block), False
            block, is_cue = [], True
    yield "".join(block), is_cue and bool(block)


class _Cue:
    """The lines of a cue as HTML."""

    def __init__(self, text: str, is_escaped: bool) -> None:
        self._text, self._is_escaped = text, is_escaped
        self._tags: list[tuple[str, str]] = []
        body = text.rstrip("\r\n")
        self._end = text[len(body) :]
        self._newline = "\r\n" if "\r\n" in text else "\n"
        lines = body.splitlines()
        # A dash at the start of a line means another speaker.
        is_dialogue = any(line.lstrip().startswith(("-", "–")) for line in lines)
        self._n_lines = 1 if is_dialogue else len(lines)
        between = self._add(self._newline, "", "br") if is_dialogue else " "
        self.html = between.join("".join(self._marked(line)) for line in lines)

    def continues(self, group: "Sequence[_Cue]") -> bool:
        """Whether a sentence continues in this cue: no full stop, and a lower-case letter."""
        last = group[-1]
        is_plain = not self._tags and not last._tags and len(group) < MOST_CUES
        return is_plain and self.html[:1].islower() and last.html[-1:] not in _ENDINGS

    def _marked(self, line: str) -> Iterator[str]:
        at = 0
        for found in _TAG.finditer(line):
            yield self._escaped(line[at : found.start()])
            at, name = found.end(), (found[2] or "").lower()
            if name not in _AROUND:
                yield self._add(found[0], "", "img")
            elif found[1]:
                yield "</span>"
            else:
                yield self._add(found[0], f"</{found[2]}>", "span")
        yield self._escaped(line[at:])

    def _escaped(self, text: str) -> str:
        return text if self._is_escaped else html.escape(text, quote=False)

    def _add(self, open: str, close: str, name: Name) -> str:
        self._tags.append((open, close))
        return tag(name, len(self._tags) - 1)

    def written(self, translation: str) -> str:
        """The translation in as many lines as the cue had."""
        if translation == self.html:
            return self._text
        out, closing = "", list[str]()
        for mark in marks(translation):
            if mark.opens is not None:
                open, close = self._tags[mark.opens]
                out += open
                closing += [close] if close else []
            elif mark.closes:
                out += closing.pop() if closing else ""
            else:
                out += html.escape(mark.text, quote=False) if self._is_escaped else mark.text
        # A blank line would end the cue.
        n_lines = self._n_lines
        lines = _distributed(out, [1] * n_lines) if n_lines > 1 else out.splitlines()
        return self._newline.join(line for line in lines if line.strip()) + self._end


def _distributed(text: str, weights: Sequence[float]) -> list[str]:
    """Distribute the words over lines, in proportion to the weights of the lines."""
    words = _WORD.findall(text)
    ends = [*accumulate(len(word) + 1 for word in words)]
    limits = [*accumulate(weights)]
    lines: list[list[str]] = [[] for _ in weights]
    for word, end in zip(words, ends, strict=True):
        middle = (end - (len(word) + 1) / 2) / ends[-1] * limits[-1]
        lines[min(bisect(limits, middle), len(lines) - 1)].append(word)
    return [" ".join(line) for line in lines]
