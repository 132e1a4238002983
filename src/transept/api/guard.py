"""Further attempts at sentences whose best translation is not complete.

A model may omit a protected span, repeat a phrase without end, reach the maximum length, or end
much too early. Then another translation of the beam is taken. If none is usable, the sentence is
translated again: first with its spans as required tokens, then in parts. Repetitions that remain
are removed. So no text is lost silently, and no output repeats itself endlessly.

A model may also lose a number, or a part of one. Then the sentence is translated again with
symbols for all its numbers and dates. If it loses a quotation mark or a bracket, a translation of
the beam that has all of them is taken, if there is one. A model of French, which reads a space
after opening marks, then reads them as they were written.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from transept.api.texts import Outputs, Translation, Unit, WithText
from transept.text.cutting import cut
from transept.text.french import FRENCH
from transept.text.protection import Masked
from transept.text.sentences import Piece, has_letters
from transept.text.surface import with_small_start, with_small_word
from transept.text.tokenizer import Tokenizer

Choose = Callable[[Unit, Iterable[WithText]], list[WithText]]
"""Chooses among the outputs of a unit."""
Decode = Callable[[Sequence[Unit], Choose | None], list[Outputs]]
"""Translates units, and returns the chosen outputs of the whole beam. None: all."""
# German may need a capital within a sentence, and English only for some words: `Mantel`, `I`.
_SMALL = {FRENCH: (with_small_start,), "en": (with_small_word,)}
PART_TOKENS = 24
"""The maximum length of the parts of a sentence without protected spans."""


class Guard:
    """Finds translations of sentences that have none."""

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self._source = source
        self._mask_ids = {mask: target.encode(mask)[-1] for mask in target.masks}

    def complete(
        self,
        units: Sequence[Unit],
        outputs: Sequence[Outputs],
        decode: Decode,
    ) -> list[Outputs]:
        """The outputs of all units.

        Args:
            units: The sentences.
            outputs: Their complete outputs. Those of some sentences are empty.
            decode: Translates units.
        """
        found = dict(enumerate(outputs))
        stages = (
            (self._joined_marks, Unit.complete),
            (self._figures, Unit.complete),
            (self._unchanged, Unit.usable),
            (self._required, Unit.usable),
            (self._parts, None),
        )
        for prepare, choose in stages:
            failed = [index for index, each in found.items() if not each]
            parts = {index: prepare(units[index]) for index in failed}
            flat = [part for index in failed for part in parts[index]]
            again = iter(decode([part for part in flat if part.ids], choose) if flat else [])
            for index in failed:
                each = [next(again) if part.ids else (part.kept,) for part in parts[index]]
                found[index] = _joined(units[index], parts[index], each)
        return [found[index] for index in range(len(units))]

    def _joined_marks(self, unit: Unit) -> list[Unit]:
        """The unit with quotation marks and brackets as they were written, if they were changed."""
        masked = unit.masked.with_marks_joined()
        if masked is unit.masked:
            return []
        return [unit._replace(ids=self._source.encode(masked.text), masked=masked)]

    def _figures(self, unit: Unit) -> list[Unit]:
        """The unit with symbols for all its numbers and dates."""
        if not self._mask_ids or not unit.masked.has_figures or unit.terms:
            return []
        masked = Masked.of(
            unit.text,
            tuple(self._mask_ids),
            unit.masked.languages,
            encode=self._source.encode,
            all_figures=True,
        )
        return [unit._replace(ids=self._source.encode(masked.text), masked=masked)]

    def _unchanged(self, unit: Unit) -> list[Unit]:
        return [unit]

    def _required(self, unit: Unit) -> list[Unit]:
        """The unit with its protected spans as required tokens."""
        spans = unit.masked.spans
        if not spans:
            return []
        if spans[0].mask in self._mask_ids:
            masks = tuple((self._mask_ids[span.mask],) for span in spans)
            return [unit._replace(required=unit.required + masks)]
        return [unit._replace(terms=unit.terms + tuple((span.source,) for span in spans))]

    def _parts(self, unit: Unit) -> list[Unit]:
        """The text between protected spans, and the spans; or the sentence in several parts."""
        if unit.terms:
            return [unit]
        text, spans = unit.masked.text, [span.mask for span in unit.masked.spans]
        language = unit.masked.languages[1]
        if not spans:
            longest = max(2, min(PART_TOKENS, len(unit.ids) // 2))
            return [self._part(piece, language) for piece in cut(text, self._source, longest)]
        marks = re.compile("|".join(map(re.escape, sorted(spans, key=len, reverse=True))))
        return [
            Unit(*piece, []) if piece.text in spans else self._part(piece, language)
            for piece in _between(text, marks)
        ]

    def _part(self, piece: Piece, language: str) -> Unit:
        text, space = piece
        ids = self._source.encode(text) if has_letters(text) else []
        forms = _SMALL.get(language, ()) if text[:1].islower() else ()
        return Unit(text, space, ids, masked=Masked(text, forms=forms))


def _between(text: str, marks: re.Pattern[str]) -> list[Piece]:
    """The text between marks, and the marks, each with the white space after it."""
    ends = [at for found in marks.finditer(text) for at in found.span()]
    pieces: list[Piece] = []
    for start, end in pairwise([0, *ends, len(text)]):
        piece = text[start:end]
        body = piece.strip()
        at = piece.find(body) if body else len(piece)
        if pieces:
            pieces[-1] = pieces[-1]._replace(space=pieces[-1].space + piece[:at])
        if body:
            pieces.append(Piece(body, piece[at + len(body) :]))
    return pieces


def _joined(unit: Unit, parts: Sequence[Unit], outputs: Sequence[Outputs]) -> Outputs:
    """The output of a unit from those of its parts. Empty if one of them has none."""
    if len(parts) == 1:
        return outputs[0]
    if not parts or not all(outputs):
        return ()
    sentences = [part.sentence(each) for part, each in zip(parts, outputs, strict=True)]
    (one,) = Translation.best(unit.text, sentences, 1).outputs
    masked, links = unit.masked, one.alignment
    return (
        replace(
            one,
            text=masked.restored(one.text),
            alignment=None if links is None else masked.realigned(links, one.text),
        ),
    )
