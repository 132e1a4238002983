"""Texts taken apart into units: what is decoded at once, normally a sentence."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, TypeGuard

from transept.api.config import TranslationConfig
from transept.errors import DataError
from transept.text.cutting import cut
from transept.text.sentences import Piece, split_sentences
from transept.text.tokenizer import Tokenizer


class Unit(NamedTuple):
    """A stretch of text, the white space after it, and its tokens without the end symbol."""

    text: str
    space: str
    ids: list[int]


class Limit(NamedTuple):
    """The longest unit in tokens, end symbol counted, and the reason."""

    tokens: int
    why: str
    possible: int | None = None
    """The longest that the model can read at all, where its positions are learned."""


class TooLongError(DataError):
    """A sentence with more tokens than a model may be given."""

    def __init__(self, number: int, what: str, enough: int | None, cure: str) -> None:
        """Say it of one among several texts.

        Args:
            number: Of the text, from 1.
            what: What is too long, and for which limit.
            enough: The limit with which it would pass; none where a model cannot read it at all.
            cure: What to do, in Python.
        """
        super().__init__(f"text {number}: {what}; {cure}")
        self.number, self.what, self.enough = number, what, enough
        self.all: Sequence[TooLongError] = (self,)
        """Where every text was looked at, those of the others too; this is the first."""


def in_order(given: object) -> TypeGuard[Iterable[Any]]:
    """Whether it is several things, of which results can be told apart by their order.

    Of a dict, the keys would be taken; of a set, any order.
    """
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)


def as_texts(given: object, what: str = "text") -> list[str]:
    """Several texts as a list. What is none of that is refused before anything is done."""
    if not in_order(given):
        name = "" if what == "text" else f"{what}: "
        raise DataError(f"{name}expected a list of texts, or one text, and got {described(given)}")
    texts: list[str] = list(given)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{what} {number}: expected a str, and got {described(text)}")
    return texts


def described(value: object) -> str:
    """What was given where text was expected, for an error."""
    if isinstance(value, bytes):
        return "bytes; decode them first"
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


def take_apart(
    texts: Sequence[str], config: TranslationConfig, tokenizer: Tokenizer, limit: Limit
) -> list[list[Unit]]:
    """The units of each text. Put together again, with their white space, they are the text."""
    pieces = [_pieces(text, config) for text in texts]
    encoded = iter(tokenizer.encode_batch([piece.text for each in pieces for piece in each]))
    taken = []
    for number, each in enumerate(pieces, start=1):
        units: list[Unit] = []
        for piece in each:
            unit = Unit(*piece, next(encoded))
            # The limit counts the end symbol.
            if len(unit.ids) < limit.tokens:
                units.append(unit)
            elif config.too_long == "split":
                units += _cut(unit, tokenizer, limit.tokens - 1)
            else:
                raise _too_long(number, unit, limit)
        taken.append(units)
    return taken


def _pieces(text: str, config: TranslationConfig) -> list[Piece]:
    if config.split:
        return split_sentences(text, config.source_language)
    inner = text.strip()
    if not inner:
        return [Piece("", text)] if text else []
    start = text.index(inner)
    before = [Piece("", text[:start])] if start else []
    return [*before, Piece(inner, text[start + len(inner) :])]


def _cut(unit: Unit, tokenizer: Tokenizer, max_tokens: int) -> list[Unit]:
    pieces = cut(unit.text, tokenizer, max_tokens)
    pieces[-1] = Piece(pieces[-1].text, unit.space)
    return [Unit(*piece, tokenizer.encode(piece.text)) for piece in pieces]


def _too_long(number: int, unit: Unit, limit: Limit) -> TooLongError:
    text = unit.text if len(unit.text) <= 40 else f"{unit.text[:40]}…"
    n_tokens = len(unit.ids) + 1
    what = f"the sentence {text!r} has {n_tokens:,} tokens, and {limit.why}"
    cure = "too_long='split' cuts it"
    if limit.possible is not None and n_tokens > limit.possible:
        return TooLongError(number, what, None, cure)
    whole = f"max_source_length={n_tokens} translates it whole"
    return TooLongError(number, what, n_tokens, f"{cure}, {whole}")
