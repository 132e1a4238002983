r"""Rule-based sentence splitting, without losing any text.

A sentence ends at a line break or a tab (which separates the cells of a table), and after 。！？
even without a space. It also ends at white space if the word before it ends in . ! ? or similar,
optionally followed by closing quotes and brackets, and the following text does not look like the
middle of a sentence (a lower-case letter or a comma). White space before a closing `»`, as in
French, ends none. A single full stop needs one more test, because it may belong to its word:

    Dr. z.B. vs.        never end a sentence
    No. 5, S. 12        do not end one before a number
    etc. Inc. U.S. J.   end one before a typical first word: `the U.S. The`, but `J. Smith`
    3. XIV.             the same if numbers are ordinals: `am 3. Mai`; a year ends a sentence

Each language has its own lists. `other` combines all of them, including the ordinals.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

from transept.text.abbreviations import (
    ENGLISH_MONTHS,
    ENGLISH_TITLES,
    ROMAN_NUMERALS,
    word_list,
)
from transept.text.moses import Language


class Piece(NamedTuple):
    """A span of text, and the white space after it."""

    text: str
    space: str


@dataclass(frozen=True, kw_only=True)
class _Rules:
    """A language's use of full stops, and the typical first words of its sentences."""

    inside: frozenset[str]
    """Abbreviations that never end a sentence."""
    before_number: frozenset[str]
    """Words that are abbreviations only if a number follows."""
    either: frozenset[str]
    """Abbreviations that may end a sentence."""
    ordinals: frozenset[str]
    """Numbers that become ordinals with a full stop."""
    openings: frozenset[str]
    """Words that often start sentences, but not names."""


_ENGLISH = _Rules(
    inside=ENGLISH_TITLES | word_list("vs cf viz approx resp e.g i.e Mt Ft esp incl"),
    before_number=ENGLISH_MONTHS
    | word_list("No Nos no nos pp Art art Ch ch Fig fig Figs Eq Sec sec Vol vol Sept"),
    either=ENGLISH_MONTHS
    | word_list("etc Inc Ltd Co Corp Bros Jr al est Sept Ave Blvd Rd Dept Univ Assn"),
    ordinals=frozenset(),
    openings=word_list(
        "The A An This That These Those There Here He She It We You They I My His Her Its Our Your "
        "Their And But Or So Yet If When While As At By For From In On To With After Before "
        "Because Although However Then Now What Who Where Why How Is Are Was Were Do Does Did Not "
        "No Yes All Some Many Most One Both Each"
    ),
)
_GERMAN = _Rules(
    inside=word_list(
        "Dr Prof Hr Fr Frl Dipl Ing St Gen Lt Maj bzw bspw ca evtl ggf inkl exkl zzgl sog vgl bzgl "
        "gem geb gest verh z.B d.h u.a i.d.R o.g s.o s.u z.T u.U m.E Tel"
    ),
    before_number=word_list("Nr Art Abs Abb Bd Kap Tab Anm Ziff Zi Aufl"),
    either=word_list(
        "usw etc Mio Mrd Std Min Sek Str Jh Jhd Jan Feb Apr Aug Sept Okt Nov Dez u.ä o.ä"
    ),
    ordinals=ROMAN_NUMERALS | frozenset(map(str, range(100))),
    openings=word_list(
        "Der Die Das Den Dem Des Ein Eine Einen Einem Einer Dies Diese Dieser Dieses Er Sie Es Wir "
        "Ihr Ich Du Man Mein Sein Unser Und Aber Oder Doch Denn Wenn Als Ob Weil Da Dann Dort Hier "
        "Nun Jetzt So Auch Nur Noch In Im An Am Auf Aus Bei Beim Mit Nach Von Vom Vor Zu Zum Zur "
        "Für Gegen Ohne Durch Seit Was Wer Wo Wie Wann Warum Ist Sind Nicht Kein Keine Ja Nein "
        "Alle Viele Einige Damit Deshalb Trotzdem Jedoch"
    ),
)
_FRENCH = _Rules(
    inside=word_list("M MM Mme Mmes Mlle Mlles Dr Pr St Ste cf env apr av c.-à-d p.ex"),
    before_number=word_list("art chap fig no nos pp vol éd"),
    either=word_list("etc hab janv févr avr juil sept oct nov déc"),
    ordinals=frozenset(),
    openings=word_list(
        "Le La Les L Un Une Des Du De Ce Cet Cette Ces C Il Elle On Nous Vous Ils Elles Je J Tu "
        "Mon Ma Mes Son Sa Ses Notre Votre Leur Et Mais Ou Or Donc Car Si Quand Comme Dans En À Au "
        "Aux Avec Pour Par Sur Sans Après Avant Puis Alors Ici Qui Que Où Pourquoi Comment Ne Non "
        "Oui Tous"
    ),
)
_RULES: dict[Language, _Rules] = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": _FRENCH,
    "other": _Rules(
        **{
            field.name: frozenset().union(
                *(getattr(rules, field.name) for rules in (_ENGLISH, _GERMAN, _FRENCH))
            )
            for field in fields(_Rules)
        }
    ),
}

STOPS = ".!?…‽؟۔।॥։።"
WIDE_STOPS = "。！？｡"
"""Stops that end a sentence without a following space."""
CLOSERS = "\"'”’“‘»«›‹)]}」』）】〉》*_"
"""Characters allowed between a stop and the white space. German closes quotes with the character
that opens them in English, so both are included."""
_OPENERS = "\"'“”„‚‘«»‹›([{「『（【〈《¿¡*_–—-•"
_MAY_END = frozenset(STOPS + CLOSERS)
_CONTINUES = ",;:)]}%&/=+" + STOPS

_GAP = re.compile(rf"\s+|[{WIDE_STOPS}]+[{re.escape(CLOSERS)}]*\s*")
_LINE_BREAK = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_GLUE = "\u00a0\u2007\u202f"
_FOLLOWING = re.compile(rf"[\s{re.escape(_OPENERS)}]*(\w{{0,24}})")
# Letters with full stops, with or without white space between them: U.S, z. B, Ph.D
_SPELT = re.compile(
    rf"(?:(?<![^\s{re.escape(_OPENERS)}.])(?:[^\W\d_]\.\s?|[^\W\d_]{{2}}\.))+[^\W\d_]{{1,3}}\Z"
)
_SPELT_LENGTH = 16
_SPACED_CLOSER = re.compile(r"\s+(?=»(?!\w))")
_HIRAGANA = re.compile("[\u3041-\u309f]")


def has_letters(text: str) -> bool:
    """Whether a text contains a letter. A model produces nonsense for a row of dots."""
    return any(map(str.isalpha, text))


def split_sentences(text: str, language: Language = "other") -> list[Piece]:
    r"""Split a text into sentences, each with the white space after it.

    Joined, they give the text again. No sentence starts or ends with white space. If the text
    starts with white space, the first sentence is empty.

    Example:
        >>> split_sentences("Dr. Who?  No. 5 is alive.\n")
        [Piece(text='Dr. Who?', space='  '), Piece(text='No. 5 is alive.', space='\n')]
    """
    pieces = []
    start = 0
    for end, following in _ends(text, _RULES[language]):
        pieces.append(Piece(text[start:end], text[end:following]))
        start = following
    if start < len(text):
        pieces.append(Piece(text[start:], ""))
    return pieces


def one_sentence(text: str) -> list[Piece]:
    """A text as one sentence, with the white space after it.

    If the text starts with white space, the first sentence is empty, as with `split_sentences`.
    """
    inner = text.strip()
    if not inner:
        return [Piece("", text)] if text else []
    start = text.index(inner)
    before = [Piece("", text[:start])] if start else []
    return [*before, Piece(inner, text[start + len(inner) :])]


def _ends(text: str, rules: _Rules) -> Iterator[tuple[int, int]]:
    """Yield the end of each sentence, and the start of the text after the white space."""
    start = 0
    for gap in _GAP.finditer(text):
        end = gap.start() + len(gap[0].rstrip())
        if end == 0 or gap.end() == len(text) or _LINE_BREAK.search(gap[0]):
            is_end = True
        elif end > gap.start():
            is_end = not _quote_continues(text, end)
        elif text[end - 1] in _MAY_END and gap[0].strip(_GLUE):
            is_end = _ends_sentence(text, start, gap, rules)
        else:
            is_end = False
        if is_end:
            yield end, gap.end()
            start = gap.end()


def _quote_continues(text: str, end: int) -> bool:
    """Whether a wide stop ends a quotation in the middle of a Japanese sentence."""
    in_quotes = text[end - 1] not in WIDE_STOPS
    return in_quotes and bool(_HIRAGANA.match(text, end))


def _ends_sentence(text: str, start: int, gap: re.Match[str], rules: _Rules) -> bool:
    """Whether the white space after a word ends the sentence that began at `start`."""
    if _SPACED_CLOSER.match(text, gap.start()):
        return False
    before = _SPACED_CLOSER.sub("", text[max(start, gap.start() - 64) : gap.start()])
    word = before.split()[-1]
    body = word.rstrip(CLOSERS)
    stem = body.rstrip(STOPS)
    stops = body[len(stem) :]
    if not stops:
        return False
    following = _FOLLOWING.match(text, gap.end())
    assert following is not None, "the pattern also matches an empty string"
    first = text[following.start(1) : following.start(1) + 1]
    if first.islower() or (first and first in _CONTINUES):
        return False
    if stops != ".":
        return True
    stem = stem.lstrip(_OPENERS)
    if stem.isdigit() and gap.start() - start == len(word):
        return False  # a leading "1." numbers the following text
    if spelt := _SPELT.search(before[-_SPELT_LENGTH:].rstrip(CLOSERS)[:-1]):
        stem = "".join(spelt[0].split())
    return not _keeps_stop(stem, following[1], rules)


def _keeps_stop(stem: str, following: str, rules: _Rules) -> bool:
    """Whether the full stop after a stem belongs to the stem and does not end the sentence."""
    small = stem[:1].lower() + stem[1:]
    if {stem, small} & rules.inside:
        return True
    if {stem, small} & rules.before_number and following[:1].isdigit():
        return True
    if following in rules.openings:
        return False
    initials = (len(stem) == 1 and stem.isalpha()) or _SPELT.match(stem)
    return bool(initials or {stem, small} & rules.either) or stem in rules.ordinals
