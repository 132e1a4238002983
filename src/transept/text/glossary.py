"""Glossaries: the required translations of terms, and words that are not translated."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from transept.errors import DataError
from transept.text.files import describe, read_sentences

Spellings = tuple[str, ...]
"""A required term. If there is a second spelling, it is for the start of an output."""
_WORD = re.compile(r"[\w-]")


class Term(NamedTuple):
    """A term of the source language and its required translation. None: it is kept."""

    source: str
    target: str | None

    @property
    def is_exact(self) -> bool:
        """Whether case matters: it has an upper-case letter after its first character."""
        return self.source[1:] != self.source[1:].lower()


@dataclass(frozen=True)
class Glossary:
    """Terms that a model must translate in a given way.

    A term matches whole words: no letter, digit, underscore or hyphen may be next to it. Inflected
    forms are separate terms. Case does not matter, except if the term has an upper-case letter
    after its first character: `bank` and `Bank` match `bank`, `Bank` and `BANK`, and `New York`
    matches only itself. A space matches any white space. A sentence is read from left to right, and
    the longest term that matches is taken. Terms do not overlap.

    Example:
        >>> glossary = transept.Glossary.of({"bank": "Kreditinstitut", "New York": None})
        >>> glossary.required("The bank is in New York.")
        (('Kreditinstitut',), ('New York',))
    """

    terms: tuple[Term, ...]

    @cached_property
    def _by_text(self) -> dict[str, list[Term]]:
        """The terms by their text in lower case."""
        found: dict[str, list[Term]] = {}
        for term in self.terms:
            found.setdefault(_lower(term.source), []).append(term)
        return found

    @cached_property
    def _lengths(self) -> list[int]:
        """The lengths of the terms, longest first."""
        return sorted({*map(len, self._by_text)}, reverse=True)

    @classmethod
    def of(cls, given: "GlossarySource | None", keep: Sequence[str] = ()) -> "Glossary":
        """Create a glossary.

        Args:
            given: A glossary, a mapping of terms to their translations, or the path of a file for
                `read`. A term whose translation is None is kept.
            keep: Further words that are kept.
        """
        if isinstance(keep, str) or not all(isinstance(word, str) for word in keep):
            raise DataError("keep: expected a list of words")
        if isinstance(given, Path | str):
            given = cls.read(given)
        if isinstance(given, Mapping):
            given = cls._checked((*pair, f"term {n}") for n, pair in enumerate(given.items(), 1))
        if given is not None and not isinstance(given, cls):
            what = type(given).__name__
            raise DataError(f"glossary: expected a Glossary, a mapping or a path, got {what}")
        known = ((*term, "the glossary") for term in (given.terms if given else ()))
        kept = ((word, None, f"word {number} to keep") for number, word in enumerate(keep, 1))
        return cls._checked([*known, *kept])

    @classmethod
    def read(cls, path: Path | str) -> "Glossary":
        """Read a UTF-8 file: on each line a term, a tab, and its translation.

        A line with one column is a word that is kept. Empty lines are ignored, and lines that begin
        with `#`.
        """
        return cls._checked(_rows(Path(path)))

    @classmethod
    def _checked(cls, rows: Iterable[tuple[object, object, str]]) -> "Glossary":
        """A glossary of terms, translations and their places. It rejects a contradiction."""
        terms: dict[str, tuple[Term, str]] = {}
        for source, target, place in rows:
            term = Term(
                _cleaned(source, place), None if target is None else _cleaned(target, place)
            )
            first, where = terms.setdefault(term.source, (term, place))
            if first != term:
                ours, theirs = (one.target or one.source for one in (term, first))
                raise DataError(
                    f"{place}: {term.source!r} is to become {ours!r}, but {theirs!r} in {where}; "
                    "remove one of them"
                )
        return cls(tuple(term for term, _ in terms.values()))

    def required(self, sentence: str) -> tuple[Spellings, ...]:
        """The terms that the translation of a sentence must contain, one per occurrence.

        A term that is kept is written as in the sentence. A translation that begins with a
        lower-case letter may begin with an upper-case one at the start of the output.
        """
        text = " ".join(sentence.split())
        return tuple(self._required(text))

    def _required(self, text: str) -> Iterator[Spellings]:
        lowered, at = _lower(text), 0
        while at < len(text):
            found = self._longest(text, lowered, at)
            if found is None:
                at += 1
                continue
            term, here = found
            spellings = (here,) if term.target is None else (term.target, _capitalized(term.target))
            yield tuple(dict.fromkeys(spellings))
            at += len(here)

    def _longest(self, text: str, lowered: str, at: int) -> tuple[Term, str] | None:
        """The longest term that begins here, and its text."""
        if not _is_boundary(text, at):
            return None
        for length in self._lengths:
            here = text[at : at + length]
            terms = self._by_text.get(lowered[at : at + length], ())
            # `May` and `may` may be different terms.
            for term in sorted(terms, key=lambda term: term.source != here):
                if _is_boundary(text, at + length) and (term.source == here or not term.is_exact):
                    return term, here
        return None


GlossarySource = Glossary | Mapping[str, str | None] | Path | str
"""A glossary, a mapping, or the path of a file."""


def missing(text: str, required: Sequence[Spellings]) -> tuple[str, ...]:
    """The required terms that a translation does not contain as often as required."""
    return tuple(
        spellings[0]
        for number, spellings in enumerate(required)
        if required[: number + 1].count(spellings) > _occurrences(text, spellings)
    )


def _occurrences(text: str, spellings: Spellings) -> int:
    words = "|".join(map(re.escape, spellings))
    return len(re.findall(rf"(?<!\w)(?:{words})(?!\w)", text))


def _rows(path: Path) -> Iterator[tuple[str, str | None, str]]:
    for number, line in enumerate(read_sentences(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        source, *targets = line.split("\t")
        place = f"{describe(path)}, line {number}"
        if len(targets) > 1:
            columns = len(targets) + 1
            raise DataError(
                f"{place}: has {columns} columns; write a term, a tab and its translation"
            )
        yield source, targets[0] if targets else None, place


def _cleaned(given: object, place: str) -> str:
    """A term with single spaces."""
    text = " ".join(given.split()) if isinstance(given, str) else ""
    if not text:
        raise DataError(f"{place}: a term is empty or not text; write a word, or remove the line")
    return text


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    """The text in lower case, with the same length."""
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def _is_boundary(text: str, at: int) -> bool:
    """Whether no word has a letter on both sides of this position."""
    if at <= 0 or at >= len(text):
        return at <= len(text)
    return not (_WORD.match(text[at - 1]) and _WORD.match(text[at]))
