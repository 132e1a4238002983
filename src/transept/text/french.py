"""French typography: one apostrophe, and spaces before units and punctuation of two parts.

Corpora with French have both apostrophes, also on their English side, so models of both directions
are trained with the straight one, and read it. They read a space after `n°`, and centuries in
digits. In English, they mostly write straight quotation marks.
"""

import re
from collections.abc import Mapping
from typing import Final

FRENCH: Final = "fr"
FRENCH_TO_ENGLISH: Final = (FRENCH, "en")
# A private-use character stands for protected text, such as a number or a time.
_MASK = "[\U000f0000-\U000ffffd]"
# Some proceedings of parliaments have `l"eau`.
_ELISION = re.compile(r"(?<=[^\W\d_])(?:’(?=\S)|\"(?=[^\W\d_]))")
# `http:` and `12:30` have no space, and neither has the end of `…?`.
_TWO_PARTS = re.compile(r"(?<=[^\s?!;:.…])[^\S\n]*(?=[?!;:]+(?:[\s»\")\]]|\Z))")
_OPENED = re.compile(r"«\s*(?=\S)")
_CLOSED = re.compile(r"(?<=\S)\s*»")
# Where quotation marks were removed.
_LEFT_OVER = re.compile(r" (?=[.,](?:\s|\Z))| (?= )")
_UNIT = re.compile(rf"(?<=\d|{_MASK})(?=(?:[%$€£]|°[CF])(?![\w%]))")
_SIGN_FIRST = re.compile(
    rf"(?<!\w)(?P<sign>[$€£])\s?(?P<number>{_MASK}|\d(?:[\d.,\u202f]*\d)?(?:\s\d{{3}}(?!\d))*)"
    r"(?P<large>\s(?:million|milliard)s?)?(?P<name>\s(?:de\s|d')?(?:dollar|euro|livre)s?)?(?!\w|[.,]\d)"
)
_AFTER: Final = {sign: f" {sign}" for sign in "$€£"}
_AFTER_MILLIONS: Final = {"$": " de dollars", "€": " d'euros", "£": " de livres"}
_QUOTED = re.compile(r'(?<!\w)"([^"]*)"(?!\w)|[“„]([^“”„]*)[“”]')
OPENING: Final = frozenset('([“"')
# Acronyms, as in `(WHO)`, are known next to a bracket.
_JOINED = re.compile(r"(?<!\w)[(\[\"“](?=\w)(?![A-Z]{2})")
_ALONE = re.compile(r"(?<!\S)[(\[\"“](?!\S)")
_APART = re.compile(r"(?<![^\s(\[«'])([(\[\"“])\s+(?=\S)")
_HOURS = re.compile(rf"({_MASK})( ?h)?eures?\b")
_TIME = re.compile(r"\d h(?: \d\d)?\Z")
_BEFORE_DAY = re.compile(rf"\b(de|à|sur|en) (?={_MASK})")
_DAY = re.compile(r"\d{1,2}(?:er)? [a-zéû]{3,}|\d{4}-\d\d-\d\d\Z|\d{1,2}/\d{1,2}/\d{2,4}\Z")
_NUMBER_SIGN = re.compile(r"\b([nN])[°º]\s?(?=\d)")
_TIGHT = re.compile(r"«(?=\S)|(?<=\S)»")
_GUILLEMET = re.compile(r"«\s*|\s*»|[“”„]")
_NUMERAL = r"\b[IVX]+(?=(?:e|ème)\b)"
_CENTURIES = re.compile(
    rf"{_NUMERAL}\w+(?:(?:,|\s(?:et|ou|à))?\s(?:(?:le|du|au)\s)?{_NUMERAL}\w+)*(?=\ssiècle)"
)
_VALUES: Final = {"I": 1, "V": 5, "X": 10}
_CONTRACTED: Final = {"de": "du", "à": "au", "sur": "le", "en": "le"}


def straight(text: str) -> str:
    """A text with straight apostrophes within words.

    Example:
        >>> straight("L’eau d’ici")
        "L'eau d'ici"
    """
    return _ELISION.sub("'", text)


def known(text: str) -> str:
    """A French text as a model knows it.

    Example:
        >>> known("L’article n°7, du XVIe siècle")
        "L'article n° 7, du 16e siècle"
        >>> known("«Oui», dit-elle.")
        '"Oui", dit-elle.'
    """
    text = _TIGHT.sub('"', _NUMBER_SIGN.sub(r"\1° ", straight(text)))
    return _CENTURIES.sub(lambda found: re.sub(_NUMERAL, _digits, found[0]), text)


def _digits(numeral: re.Match[str]) -> str:
    """The value of a Roman numeral. A letter before a larger one is subtracted."""
    values = [_VALUES[letter] for letter in numeral[0]]
    following = [*values[1:], 0]
    return str(sum(-n if n < m else n for n, m in zip(values, following, strict=True)))


def with_straight_quotes(text: str) -> str:
    """An English text with straight quotation marks, as models of French mostly write them.

    Example:
        >>> with_straight_quotes("«Yes. » The “word”")
        '"Yes." The "word"'
    """
    return _GUILLEMET.sub('"', text)


def apart(text: str) -> str:
    """A text with a space after opening quotation marks and brackets.

    A model knows most words only after a space, and may copy or distort others: `(blue)`.

    Example:
        >>> apart('My "blue" car (new)')
        'My " blue" car ( new)'
    """
    return text if _ALONE.search(text) else _JOINED.sub(lambda found: f"{found[0]} ", text)


def joined(text: str) -> str:
    """A text without a space after opening quotation marks and brackets.

    Example:
        >>> joined('Ma " voiture" ( bleue)')
        'Ma "voiture" (bleue)'
    """
    return _APART.sub(r"\1", text)


def spaced(text: str) -> str:
    """A French text with a space before `? ! ; :`, and within `« »`.

    Example:
        >>> spaced("«Vraiment?» Oui: à 12:30!")
        '« Vraiment ? » Oui : à 12:30 !'
    """
    if "«" in text or "»" in text:
        text = _CLOSED.sub(" »", _OPENED.sub("« ", text))
    return _LEFT_OVER.sub("", _TWO_PARTS.sub(" ", text)).strip(" ")


def with_amounts(text: str) -> str:
    """A French text with the signs of currencies after the number, and a space before units.

    Example:
        >>> with_amounts("$100, soit 2,5%, de $1,2 milliards")
        '100 $, soit 2,5 %, de 1,2 milliards de dollars'
    """

    def after(found: re.Match[str]) -> str:
        large, words = found["large"] or "", _AFTER_MILLIONS if found["large"] else _AFTER
        return found["number"] + large + (found["name"] or words[found["sign"]])

    return _UNIT.sub(" ", _SIGN_FIRST.sub(after, text))


def with_guillemets(text: str) -> str:
    """A French text with guillemets around what is quoted.

    Example:
        >>> with_guillemets('Le mot "eau"')
        'Le mot «eau»'
    """
    return _QUOTED.sub(lambda found: f"«{found[1] or found[2] or ''}»", text)


def fitted(output: str, spans: Mapping[str, str]) -> str:
    """An output of a model whose words fit the times and dates that its symbols stand for.

    Example:
        >>> mask = "\U000f2594"
        >>> fitted(f"à {mask} heures", {mask: "15 h 30"}) == f"à {mask}"
        True
        >>> fitted(f"à {mask}", {mask: "1er juin"}) == f"au {mask}"
        True
    """

    def hours(found: re.Match[str]) -> str:
        # Training pairs had the symbol for `15 h` in `15 heures`.
        is_time = not found[2] or _TIME.search(spans.get(found[1], ""))
        return found[1] if is_time else found[0]

    def before_day(found: re.Match[str]) -> str:
        is_day = _DAY.match(spans.get(output[found.end()], ""))
        return f"{_CONTRACTED[found[1]]} " if is_day else found[0]

    return _HOURS.sub(hours, _BEFORE_DAY.sub(before_day, output))
