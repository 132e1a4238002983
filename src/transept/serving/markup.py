"""HTML taken apart into text to translate and markup to keep.

Nothing is interpreted: markup is what lies between `<` and `>` and is passed on, character for
character, in its order. Text is unescaped, translated and escaped again, so that nothing a model
writes can become markup.
"""

import html
import re
from collections.abc import Iterator

from transept.text.moses import Language
from transept.text.sentences import Piece, split_sentences

# Nothing here runs across the next `<` but what is meant to run to its end: so the whole takes
# time in proportion to the text, whatever the text is.
_MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)
    | <(script|style|code|pre|textarea|svg|math)\b[^<>]*>.*?(?:</\1\s*>|\Z)
    | <[/!?]?[a-z](?:[^"'<>]|"[^"<]*"|'[^'<]*')*+>
    | <[/!?]?[a-z][^<>]*>
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)


def split_html(text: str, language: Language) -> list[Piece]:
    """Sentences, and after each what stands before the next: white space and markup."""
    pieces: list[Piece] = []
    for is_markup, part in _parts(text):
        if is_markup:
            _append(pieces, part)
            continue
        for piece in _sentences(html.unescape(part), language):
            if piece.text:
                pieces.append(Piece(piece.text, escape(piece.space)))
            else:
                _append(pieces, escape(piece.space))
    return pieces


def escape(text: str) -> str:
    """Text as HTML; quotes stay, for text is no attribute."""
    return html.escape(text, quote=False)


def _sentences(text: str, language: Language) -> Iterator[Piece]:
    inner = text.strip()
    start = text.index(inner)
    yield Piece("", text[:start])
    # In HTML a line break is a space like another: it ends no sentence.
    yield from split_sentences(" ".join(inner.splitlines()), language)
    yield Piece("", text[start + len(inner) :])


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    at = 0
    for found in _MARKUP.finditer(text):
        yield False, text[at : found.start()]
        yield True, found[0]
        at = found.end()
    yield False, text[at:]


def _append(pieces: list[Piece], markup: str) -> None:
    """Put markup after the last piece; an empty piece carries what stands before any text."""
    if not markup:
        return
    last = pieces.pop() if pieces else Piece("", "")
    pieces.append(Piece(last.text, last.space + markup))
