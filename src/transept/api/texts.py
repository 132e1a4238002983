"""Texts taken apart into units, normally sentences, and put together again from their outputs."""

import heapq
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeGuard

from transept.api.config import TranslationConfig
from transept.errors import ConfigError, DataError, Problem
from transept.model.config import ModelConfig
from transept.text.cutting import cut
from transept.text.sentences import CLOSERS, WIDE_STOPS, Piece, split_sentences
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


class LengthLimits:
    """How many tokens a sentence may have, end symbol counted."""

    def __init__(self, trained: int, configs: Iterable[ModelConfig]) -> None:
        """Find the limits of networks whose training had sentences of `trained` tokens at most."""
        learned = (config.max_positions for config in configs if config.positions == "learned")
        self._possible = min(learned, default=None)
        self.trained = self.within(trained)

    def within(self, length: int) -> int:
        """The length, or the longest that the networks can read or write, where that is less."""
        return length if self._possible is None else min(length, self._possible)

    def asked(self, max_source_length: int | None) -> Limit:
        """The limit that was asked for, or that of the training."""
        asked, possible = max_source_length, self._possible
        if asked is None:
            why = f"the longest that the model was trained on has {self.trained:,}"
            return Limit(self.trained, why, possible)
        if possible is not None and asked > possible:
            what = f"{asked} is more than the {possible} positions that the model has learned"
            raise ConfigError([Problem("max_source_length", what)])
        return Limit(asked, f"the limit given is {asked:,}", possible)

    def check_pairs(self, lengths: Iterable[int]) -> None:
        """Refuse a pair if its longer side has more tokens than the networks can read or write."""
        possible = self._possible
        for number, length in enumerate(lengths, start=1):
            if possible is not None and length > possible:
                what = f"a side has {length:,} tokens, and the model knows {possible:,} positions"
                raise TooLongError(number, what, None, "leave the pair out")


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
    texts: Sequence[str], config: TranslationConfig, tokenizer: Tokenizer, limits: LengthLimits
) -> list[list[Unit]]:
    """The units of each text. Put together again, with their white space, they are the text."""
    limit = limits.asked(config.max_source_length)
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


Alignment = tuple[tuple[int, int], ...]
"""Pairs (i, j): source word i and output word j belong together. Words stand between white space
and are counted from 0."""


@dataclass(frozen=True, slots=True)
class Output:
    """One text that the model gives."""

    text: str
    score: float
    """What it is ranked by: log P(Y|X) / lp(Y). Of several sentences, the sum of theirs."""
    log_probability: float
    """log P(Y|X), natural. Of several sentences, the sum of theirs."""
    finished: bool = True
    """Whether it came to an end by itself, and not at the maximum length."""
    alignment: Alignment | None = None
    """Which words of the source it says, where that was asked for."""

    @property
    def pharaoh(self) -> str:
        """The alignment as `0-0 1-2 …`."""
        return " ".join(f"{i}-{j}" for i, j in self.alignment or ())


NOTHING = Output("", 0.0, 0.0, alignment=())
"""What becomes of a text without a word: nothing, for certain."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A translation while it is being written."""

    text: str
    """What it would be if it ended here."""
    stable: int
    """So many of its first characters will not change any more."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a text that was translated by itself."""

    source: str
    space: str
    """The white space after it, which stays."""
    outputs: tuple[Output, ...]
    """Best first; of a sample, in the order drawn."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What the model makes of one text: its best output, and the others that were asked for.

    Example:
        >>> result = transept.load("en-de").translate("It rains.", n_best=3)
        >>> result.text == result.outputs[0].text
        True
        >>> result.outputs[0].score >= result.outputs[2].score
        True
    """

    source: str
    outputs: tuple[Output, ...]
    """Best first; of a sample, in the order drawn."""
    sentences: tuple[Sentence, ...]
    """The parts that the text was taken apart into; none where there was nothing to translate."""

    @property
    def text(self) -> str:
        """The best output."""
        return self.outputs[0].text

    @property
    def score(self) -> float:
        """The best output's score."""
        return self.outputs[0].score

    @property
    def alignment(self) -> Alignment | None:
        """The best output's alignment, where that was asked for."""
        return self.outputs[0].alignment

    @classmethod
    def best(cls, source: str, sentences: Sequence[Sentence], n_best: int) -> "Translation":
        """The `n_best` combinations of the sentences' outputs with the highest sums of scores."""
        choices: list[tuple[float, tuple[Output, ...]]] = [(0.0, ())]
        for sentence in sentences:
            longer = (
                (score + output.score, (*before, output))
                for score, before in choices
                for output in sentence.outputs
            )
            choices = heapq.nlargest(n_best, longer, key=lambda choice: choice[0])
        outputs = map(partial(_together, sentences), (outputs for _, outputs in choices))
        return cls(source, tuple(outputs), tuple(sentences))

    @classmethod
    def drawn(cls, source: str, sentences: Sequence[Sentence], n: int) -> "Translation":
        """The sentences' first draws together, then their second: draws of the whole text."""
        choices = zip(*(sentence.outputs for sentence in sentences), strict=True)
        outputs = [_together(sentences, outputs) for outputs in choices] or [NOTHING] * n
        return cls(source, tuple(outputs), tuple(sentences))


@dataclass(frozen=True, slots=True)
class PairScore:
    """How probable a model holds a given translation to be."""

    source: str
    target: str
    log_probability: float
    """log P(Y|X), natural, the end symbol included."""
    tokens: tuple[str, ...]
    """The pieces of the target, and the end symbol."""
    token_log_probabilities: tuple[float, ...]
    """log P of each, given the source and the ones before it."""


def _together(sentences: Sequence[Sentence], outputs: Sequence[Output]) -> Output:
    """One output of a text from one of each of its sentences."""
    if len(outputs) == 1 and not sentences[0].space:
        return outputs[0]
    texts: list[str] = []
    links: list[tuple[int, int]] = []
    first_i = first_j = 0
    for number, (sentence, output) in enumerate(zip(sentences, outputs, strict=True), start=1):
        links += ((first_i + i, first_j + j) for i, j in output.alignment or ())
        joint = _joint(sentence, output, last=number == len(sentences))
        first_i += _words_ended(sentence.source, sentence.space)
        first_j += _words_ended(output.text, joint)
        texts += output.text, joint
    return Output(
        "".join(texts),
        sum((output.score for output in outputs), 0.0),
        sum((output.log_probability for output in outputs), 0.0),
        all(output.finished for output in outputs),
        None if any(output.alignment is None for output in outputs) else tuple(links),
    )


def _words_ended(text: str, space: str) -> int:
    """How many words of a text end before the next text: without a space the last goes on."""
    return len(text.split()) - bool(text and not space)


def _joint(sentence: Sentence, output: Output, last: bool) -> str:
    """What stands between an output and the next: what stood there in the source.

    Chinese and Japanese put nothing between sentences; other languages need a space there.
    """
    if sentence.space or last or not _ends_wide(sentence.source) or _ends_wide(output.text):
        return sentence.space
    return " "


def _ends_wide(text: str) -> bool:
    return text.rstrip(CLOSERS).endswith(tuple(WIDE_STOPS))
