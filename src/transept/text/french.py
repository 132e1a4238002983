"""French typography: one apostrophe, and spaces before the punctuation of two parts.

Corpora with French have both apostrophes, also on their English side, so models of both directions
are trained with the straight one, and read it.
"""

import re
from typing import Final

FRENCH: Final = "fr"
# Some proceedings of parliaments have `l"eau`.
_ELISION = re.compile(r"(?<=[^\W\d_])(?:’(?=\S)|\"(?=[^\W\d_]))")
# `http:` and `12:30` have no space, and neither has the end of `…?`.
_TWO_PARTS = re.compile(r"(?<=[^\s?!;:.…])[^\S\n]*(?=[?!;:]+(?:[\s»\")\]]|\Z))")
_OPENED = re.compile(r"«\s*(?=\S)")
_CLOSED = re.compile(r"(?<=\S)\s*»")
# Where quotation marks were removed.
_LEFT_OVER = re.compile(r" (?=[.,](?:\s|\Z))| (?= )")


def straight(text: str) -> str:
    """A text with straight apostrophes within words.

    Example:
        >>> straight("L’eau d’ici")
        "L'eau d'ici"
    """
    return _ELISION.sub("'", text)


def spaced(text: str) -> str:
    """A French text with a space before `? ! ; :`, and within `« »`.

    Example:
        >>> spaced("«Vraiment?» Oui: à 12:30!")
        '« Vraiment ? » Oui : à 12:30 !'
    """
    if "«" in text or "»" in text:
        text = _CLOSED.sub(" »", _OPENED.sub("« ", text))
    return _LEFT_OVER.sub("", _TWO_PARTS.sub(" ", text)).strip(" ")
