"""What keeps tokenization lossless.

sentencepiece writes a space as `▁` (U+2581) and reads every `▁` as a space, so a `▁` of the text
would come back as a space. Here it is replaced by a private character before encoding, and that
character, should the text hold it, is marked by another:

    ▁  ->  MARK            MARK  ->  ESCAPE MARK            ESCAPE  ->  ESCAPE ESCAPE

Everything else that could get lost is settled by how the vocabulary is trained (`training`).
"""

import re

SPACE_SYMBOL = "▁"
MARK = "\U000f2581"
ESCAPE = "\U000f2580"

_PLAIN = re.compile(f"[{SPACE_SYMBOL}{MARK}{ESCAPE}]")
_ESCAPED = re.compile(f"{ESCAPE}([{MARK}{ESCAPE}])|{MARK}")


def escape(text: str) -> str:
    """The text without any `▁`, such that `unescape` gives it back."""
    # Almost no text holds one of them; these three tests cost next to nothing beside encoding.
    if SPACE_SYMBOL in text or MARK in text or ESCAPE in text:
        return _PLAIN.sub(lambda found: _escaped(found[0]), text)
    return text


def unescape(text: str) -> str:
    """The inverse of `escape`. An ESCAPE that escapes nothing (a model may write one) stays."""
    if MARK in text or ESCAPE in text:
        return _ESCAPED.sub(lambda found: found[1] or SPACE_SYMBOL, text)
    return text


def _escaped(character: str) -> str:
    return MARK if character == SPACE_SYMBOL else ESCAPE + character
