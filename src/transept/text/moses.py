r"""Separates words and punctuation like Moses' `tokenizer.perl`, for scores that assume it.

Published "tokenized BLEU" counts the tokens of that Perl script, so its behaviour is reproduced
here, including its quirks. The rules, in order of application:

    symbols         everything except letters, digits and . , ' ` - is a separate token; so is ’
    dots            two or more in a row are one token
    commas          are separate tokens unless between two digits: 5,300
    apostrophes     en: don 't    fr: l' homme    de and others: geht ' s
    full stops      are separate tokens unless they end an abbreviation, or a word followed by a
                    lower-case one; a full stop at the end of the text always is

The rules were derived from the script's behaviour; code and abbreviation lists were written for
this project. Known differences from the script (as of 2018; before that, an abbreviation kept its
full stop at the end of the text too):

- The lists are shorter: only here, a full stop after a rarer abbreviation is split off.
- Quotes and brackets are not escaped (`"`, not `&quot;`). Counts of matching tokens do not change.
- Every apostrophe is treated separately: `d' O' Donnell`. The script skips the second of two with
  at most one letter between them: `d' O'Donnell`.
- Letters are Python's: vowel signs of Indic scripts, which Perl counts as letters, are symbols.
- No protected patterns, no splitting at hyphens (the script's `-a`), and no rules for languages
  other than en, de and fr.
"""

import re
from dataclasses import dataclass
from string import ascii_letters, ascii_uppercase, digits
from typing import Literal

from transept.text.abbreviations import (
    ENGLISH_MONTHS,
    ENGLISH_TITLES,
    ROMAN_NUMERALS,
    word_list,
)

Language = Literal["de", "en", "fr", "other"]
"""`other` stands for a language without specific rules in the script."""

# Numbers that are not decimal digits: Perl's \p{Alnum} lacks the first kind, Python's \w has both.
_FRACTIONS = "²³¹¼-¾\u2070-\u2079\u2080-\u2089\u2150-\u215f\u2189\u2460-\u249b\u24ea-\u24ff"
_ROMAN = "\u2160-\u2188"
_LETTER = rf"[^\W\d_{_FRACTIONS}]"
_NUMBER = rf"[\d{_FRACTIONS}{_ROMAN}]"

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
_SYMBOL = re.compile(rf"[^\w\s.'`,\-]|[_{_FRACTIONS}]")
_DOTS = re.compile(r"\.{2,}")
_COMMA = re.compile(rf"(?<!\A)(?<!{_NUMBER}),|,(?!{_NUMBER})")

# At either end of the text the script does not split off an apostrophe, except after a full stop.
_AT_END = (re.compile(r"\.'\Z"), " . '")
_ALONE = re.compile(rf"(?<!\A)(?:(?<!{_LETTER})'|'(?!{_LETTER}))(?!\Z)")
_ALONE_IN_ENGLISH = re.compile(rf"(?<!\A)(?:(?<!{_LETTER}|{_NUMBER})'|'(?!{_LETTER}))(?!\Z)")
_IN_FRENCH_WORD = re.compile(rf"(?<={_LETTER})'(?={_LETTER})")
_IN_ENGLISH_WORD = re.compile(rf"(?<={_LETTER})'(?={_LETTER})|(?<={_NUMBER})'(?=s)")
_APOSTROPHES: dict[Language, tuple[tuple[re.Pattern[str], str], ...]] = {
    "de": ((re.compile("'"), " ' "),),
    "en": (_AT_END, (_ALONE_IN_ENGLISH, " ' "), (_IN_ENGLISH_WORD, " '")),
    "fr": (_AT_END, (_ALONE, " ' "), (_IN_FRENCH_WORD, "' ")),
    "other": ((re.compile("'"), " ' "),),
}


@dataclass(frozen=True)
class _Abbreviations:
    """Words whose full stop belongs to them."""

    always: frozenset[str]
    before_digits: frozenset[str] = frozenset()
    """Words that are abbreviations only if a digit follows: `No. 5`."""


_INITIALS = frozenset(ascii_uppercase)
# No German word is a single letter, and of the French ones only `a` counts.
_LETTERS = frozenset(ascii_letters)
_GERMAN_ORDINALS = frozenset(map(str, range(1, 100)))

_ENGLISH = _Abbreviations(
    _INITIALS | ENGLISH_TITLES | ENGLISH_MONTHS | word_list("Ph Bros Corp Asst Nos vs"),
    word_list("No Art pp"),
)
_GERMAN = _Abbreviations(
    _LETTERS
    | _GERMAN_ORDINALS
    | word_list("Dr Prof St Gen Lt Maj Mr Mrs Ms Nr Art Std Mio Mrd")
    | word_list("bzgl bzw ca etc evtl ggf sog usw vgl")
    | ROMAN_NUMERALS,
)
_FRENCH = _Abbreviations(
    _LETTERS - {"a"}
    | word_list("MM art av apr boul cf chap env etc ex fig hab ibid pp suiv sup tél vol vs"),
)
_ABBREVIATIONS: dict[Language, _Abbreviations] = {
    "de": _GERMAN,
    "en": _ENGLISH,
    "fr": _FRENCH,
    "other": _ENGLISH,
}


def tokenize(text: str, language: Language = "other") -> list[str]:
    """Return the tokens of a raw sentence."""
    text = " ".join(_CONTROL.sub("", text).split())
    text = _SYMBOL.sub(r" \g<0> ", text)
    text = _DOTS.sub(r" \g<0> ", text)
    text = _COMMA.sub(" , ", text)
    for apostrophe, replacement in _APOSTROPHES[language]:
        text = apostrophe.sub(replacement, text)
    return _split_full_stops(text.split(), _ABBREVIATIONS[language])


def _split_full_stops(words: list[str], abbreviations: _Abbreviations) -> list[str]:
    tokens: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        stem = word[:-1]
        ends_in_stop = word.endswith(".") and stem.strip(".")
        if ends_in_stop and not _is_abbreviated(stem, following, abbreviations):
            tokens += (stem, ".")
        else:
            tokens.append(word)
    return tokens


def _is_abbreviated(stem: str, following: str, abbreviations: _Abbreviations) -> bool:
    """Whether the full stop after a stem belongs to it. At the end, `following` is empty."""
    if not following:
        return False
    return (
        stem in abbreviations.always
        or following[0].islower()
        or ("." in stem and any(map(str.isalpha, stem)))
        or (stem in abbreviations.before_digits and following[0] in digits)
    )
