"""Split texts into units, normally sentences, write their outputs, and join these."""

import heapq
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeGuard

from transept.api.config import ReadingConfig, TranslationConfig
from transept.decoding.step import Hypothesis, Partial
from transept.errors import ConfigError, DataError, Problem, TooLongError
from transept.model.config import ModelConfig
from transept.text.cutting import cut
from transept.text.glossary import Spellings, missing
from transept.text.protection import Masked, before_repetition
from transept.text.sentences import (
    CLOSERS,
    WIDE_STOPS,
    Piece,
    has_letters,
    one_sentence,
    split_sentences,
)
from transept.text.surface import stable_start
from transept.text.tokenizer import Tokenizer

NOT_MASKED = Masked("")
LEAST_LENGTH, LONG = 0.4, 12
"""An output with fewer than 0.4 tokens for each token of a source of at least 12 is incomplete. No
human translation of 18,000 sentences of test sets is as short; a model may end a sentence at
`am 22.`."""


WithText = tuple[Hypothesis, str]
"""An output of a search, and its text as the model wrote it."""


class Unit(NamedTuple):
    """A part of a text, the white space after it, and its token ids without the end symbol.

    A part that has no letters outside its protected spans has no ids: it is kept as it is.
    """

    text: str
    space: str
    ids: list[int]
    split_from: int | None = None
    """See `Sentence.split_from`."""
    required: tuple[tuple[int, ...], ...] = ()
    """Token sequences that the output must contain."""
    terms: tuple[Spellings, ...] = ()
    """Terms that the output must contain."""
    masked: Masked = NOT_MASKED
    """The text as the model reads it."""

    def sentence(self, outputs: "tuple[Output, ...]") -> "Sentence":
        """The unit with its outputs."""
        return Sentence(self.text, self.space, outputs, self.split_from)

    @property
    def kept(self) -> "Output":
        """The output of a unit that is not translated: its text."""
        words = range(len(self.text.split()))
        return Output(self.text, 0.0, 0.0, alignment=tuple(zip(words, words, strict=True)))

    def complete(self, found: Iterable[WithText]) -> list[WithText]:
        """The outputs that are accepted and have the marks and the figures of the text.

        Marks are quotation marks and brackets.
        """
        return [
            (one, text)
            for one, text in found
            if self.masked.keeps_marks(text)
            and (self.terms or self.masked.keeps_figures(text))
            and self.accepts(one, text)
        ]

    def usable(self, found: Iterable[WithText]) -> list[WithText]:
        """The outputs that are complete. If none is, those that are accepted."""
        found = list(found)
        return self.complete(found) or [pair for pair in found if self.accepts(*pair)]

    def accepts(self, one: Hypothesis, text: str) -> bool:
        """Whether an output is complete, and its text has all spans and does not repeat itself."""
        if not self.masked.is_kept(text):
            return False
        # Another attempt would be without the terms, or with the same result.
        if self.terms:
            return True
        is_complete = one.finished and len(one.ids) >= self.least_tokens
        return is_complete and not self.masked.is_loop(text)

    @property
    def least_tokens(self) -> float:
        """The number of tokens that a complete output has at least."""
        n_tokens = len(self.ids)
        return LEAST_LENGTH * n_tokens if n_tokens >= LONG else 0.0

    def tagged(self, tag: Sequence[int]) -> "Unit":
        """The unit with the tag of the target language before its ids, if it has any."""
        return self._replace(ids=[*tag, *self.ids]) if tag and self.ids else self


class Limit(NamedTuple):
    """The maximum number of tokens of a unit, including the end symbol, and the reason."""

    tokens: int
    why: str
    possible: int | None = None
    """The number of learned positions, which cannot be exceeded. None if they are sinusoidal."""


class LengthLimits:
    """Limits on the number of tokens of a sentence, including the end symbol."""

    def __init__(self, trained: int, configs: Iterable[ModelConfig]) -> None:
        """Find the limits of networks trained on sentences of at most `trained` tokens."""
        learned = (config.max_positions for config in configs if config.positions == "learned")
        self._possible = min(learned, default=None)
        self.trained = self.clamp(trained)

    def clamp(self, length: int) -> int:
        """Limit a length to the number of learned positions, if any."""
        return length if self._possible is None else min(length, self._possible)

    def limit(self, max_source_length: int | None) -> Limit:
        """The given limit. Default: the longest sentence of the training."""
        given, possible = max_source_length, self._possible
        if given is None:
            why = f"the longest that the model was trained on has {self.trained:,}"
            return Limit(self.trained, why, possible)
        if possible is not None and given > possible:
            what = f"{given} is more than the {possible} positions that the model has learned"
            raise ConfigError([Problem("max_source_length", what)])
        return Limit(given, f"the given limit is {given:,}", possible)

    def check_pairs(self, lengths: Iterable[int]) -> None:
        """Reject a pair whose longer side has more tokens than the networks have positions."""
        possible = self._possible
        for number, length in enumerate(lengths, start=1):
            if possible is not None and length > possible:
                what = f"a side has {length:,} tokens, and the model has {possible:,} positions"
                raise TooLongError(number, what, None, "omit the pair")


def is_ordered(given: object) -> TypeGuard[Iterable[Any]]:
    """Whether it is a collection of items in a defined order. Dicts and sets are not."""
    return isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set)


def as_texts(given: object, what: str = "text") -> list[str]:
    """Convert texts to a list. Anything else raises an error."""
    if not is_ordered(given):
        name = "" if what == "text" else f"{what}: "
        raise DataError(f"{name}expected a text or a list of texts, got {described(given)}")
    texts: list[str] = list(given)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{what} {number}: expected a str, got {described(text)}")
    return texts


def described(value: object) -> str:
    """Describe a value that is not text, for an error message."""
    if isinstance(value, bytes):
        return "bytes; decode them first"
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


class Reader:
    """Splits texts into units, and encodes them."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        masks: Sequence[str],
        languages: tuple[str, str],
        limits: LengthLimits,
    ) -> None:
        """Create a reader.

        Args:
            tokenizer: The source vocabulary.
            masks: The symbols for protected spans that both vocabularies have.
            languages: The source and the target language, if they are known.
            limits: The limits on the length of a unit.
        """
        self._tokenizer, self._masks = tokenizer, masks
        self._languages, self._limits = languages, limits

    def units(self, texts: Sequence[str], config: TranslationConfig) -> list[list[Unit]]:
        """Split each text into units.

        The units and their white space, joined, are the text, without the tag of its target
        language.
        """
        tagged = [self._tokenizer.target_tag(text, config.target_language) for text in texts]
        rules = config.source_language
        pieces = [
            split_sentences(text, rules) if config.split else one_sentence(text)
            for _, text in tagged
        ]
        masked = [[self._masked(piece.text, config) for piece in each] for each in pieces]
        encoded = iter(self._tokenizer.encode_batch([one.text for each in masked for one in each]))
        result = []
        for number, ((tag, _), *each) in enumerate(zip(tagged, pieces, masked, strict=True), 1):
            units = []
            for piece, one in zip(*each, strict=True):
                ids, has_words = (
                    next(encoded),
                    has_letters(one.text) if config.raw else one.has_words,
                )
                units.append(Unit(piece.text, piece.space, ids if has_words else [], masked=one))
            result.append(self._fitting([unit.tagged(tag) for unit in units], tag, config, number))
        return result

    def _masked(self, text: str, config: TranslationConfig) -> Masked:
        if config.raw:
            return Masked(text)
        return Masked.of(text, self._masks, self._languages, encode=self._tokenizer.encode)

    def _fitting(
        self, units: Sequence[Unit], tag: Sequence[int], config: TranslationConfig, number: int
    ) -> list[Unit]:
        """Units that are not too long."""
        limit = self._limits.limit(config.max_source_length)
        fitting: list[Unit] = []
        for unit in units:
            # The limit counts the end symbol.
            if len(unit.ids) < limit.tokens:
                fitting.append(unit)
            elif config.too_long == "split":
                some = self._parts(unit, limit.tokens - 1 - len(tag), config)
                fitting += [one.tagged(tag) for one in some]
            else:
                raise _too_long(number, unit, limit)
        return fitting

    def _parts(self, unit: Unit, max_tokens: int, config: TranslationConfig) -> list[Unit]:
        pieces = cut(unit.text, self._tokenizer, max_tokens)
        pieces[-1] = Piece(pieces[-1].text, unit.space)
        masked = [self._masked(piece.text, config) for piece in pieces]
        first, *rest = (
            Unit(piece.text, piece.space, self._tokenizer.encode(one.text), masked=one)
            for piece, one in zip(pieces, masked, strict=True)
        )
        return [first._replace(split_from=len(unit.ids) + 1), *rest]


def _too_long(number: int, unit: Unit, limit: Limit) -> TooLongError:
    text = unit.text if len(unit.text) <= 40 else f"{unit.text[:40]}…"
    n_tokens = len(unit.ids) + 1
    what = f"the sentence {text!r} has {n_tokens:,} tokens, and {limit.why}"
    cure = "too_long='split' splits it"
    if limit.possible is not None and n_tokens > limit.possible:
        return TooLongError(number, what, None, cure)
    whole = f"max_source_length={n_tokens} translates it unsplit"
    return TooLongError(number, what, n_tokens, f"{cure}, {whole}")


Alignment = tuple[tuple[int, int], ...]
"""Pairs (i, j): source word i is aligned with output word j. Words are separated by white space and
numbered from 0."""


@dataclass(frozen=True, slots=True)
class Output:
    """One translation of a text."""

    text: str
    score: float
    """The score for ranking: log P(Y|X) / lp(Y). For several sentences, the sum of their scores."""
    log_probability: float
    """log P(Y|X), natural logarithm. For several sentences, the sum."""
    finished: bool = True
    """Whether it ended with the end symbol, and not at the maximum length."""
    alignment: Alignment | None = None
    """The word alignment, if requested."""
    missing: tuple[str, ...] = ()
    """Required terms that the text does not contain."""

    @property
    def pharaoh(self) -> str:
        """The alignment as `0-0 1-2 …`."""
        return " ".join(f"{i}-{j}" for i, j in self.alignment or ())


Outputs = tuple[Output, ...]
"""The outputs of a sentence or a text, best first."""


def distinct(outputs: Sequence[Output]) -> tuple[Output, ...]:
    """The outputs without those whose text occurred before: another segmentation of it."""
    first: dict[str, Output] = {}
    for one in outputs:
        first.setdefault(one.text, one)
    return tuple(first.values())


NOTHING = Output("", 0.0, 0.0, alignment=())
"""The output for a text without words: empty, with probability 1."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A partial translation."""

    text: str
    """The translation so far."""
    stable: int
    """The number of leading characters that will not change."""
    missing: tuple[str, ...] = ()
    """Required terms that the translation does not contain, in the last draft."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A part of a text that was translated separately."""

    source: str
    space: str
    """The white space after it, which is kept."""
    outputs: tuple[Output, ...]
    """Best first; samples are in the order in which they were drawn."""
    split_from: int | None = None
    """If this is the first part of a sentence with too many tokens: their number, end symbol
    included."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of one text: its best output, and further ones if requested.

    Example:
        >>> result = transept.load("en-de").translate("It rains.", n_best=3)
        >>> result.text == result.outputs[0].text
        True
        >>> result.outputs[0].score >= result.outputs[2].score
        True
    """

    source: str
    outputs: tuple[Output, ...]
    """Best first; samples are in the order in which they were drawn."""
    sentences: tuple[Sentence, ...]
    """The sentences of the text; empty if there was nothing to translate."""

    @property
    def text(self) -> str:
        """The text of the best output."""
        return self.outputs[0].text

    @property
    def score(self) -> float:
        """The best output's score."""
        return self.outputs[0].score

    @property
    def alignment(self) -> Alignment | None:
        """The best output's alignment, if requested."""
        return self.outputs[0].alignment

    @property
    def too_long(self) -> tuple[int, ...]:
        """The number of tokens of each sentence that had too many and was split."""
        return tuple(one.split_from for one in self.sentences if one.split_from is not None)

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
        outputs = map(partial(_join_outputs, sentences), (outputs for _, outputs in choices))
        return cls(source, tuple(outputs), tuple(sentences))

    @classmethod
    def drawn(cls, source: str, sentences: Sequence[Sentence], n: int) -> "Translation":
        """Join the first samples of all sentences, then the second ones, and so on."""
        choices = zip(*(sentence.outputs for sentence in sentences), strict=True)
        outputs = [_join_outputs(sentences, outputs) for outputs in choices] or [NOTHING] * n
        return cls(source, tuple(outputs), tuple(sentences))


def _join_outputs(sentences: Sequence[Sentence], outputs: Sequence[Output]) -> Output:
    """Join one output of each sentence to an output of the text."""
    if len(outputs) == 1 and not sentences[0].space:
        return outputs[0]
    texts: list[str] = []
    links: list[tuple[int, int]] = []
    first_i = first_j = 0
    for number, (sentence, output) in enumerate(zip(sentences, outputs, strict=True), start=1):
        links += ((first_i + i, first_j + j) for i, j in output.alignment or ())
        separator = _separator(sentence, output, last=number == len(sentences))
        first_i += _count_complete_words(sentence.source, sentence.space)
        first_j += _count_complete_words(output.text, separator)
        texts += output.text, separator
    return Output(
        "".join(texts),
        sum((output.score for output in outputs), 0.0),
        sum((output.log_probability for output in outputs), 0.0),
        all(output.finished for output in outputs),
        None if any(output.alignment is None for output in outputs) else tuple(links),
        tuple(term for output in outputs for term in output.missing),
    )


def _count_complete_words(text: str, space: str) -> int:
    """The number of words that end before the next text. Without a space, the last continues."""
    return len(text.split()) - bool(text and not space)


def _separator(sentence: Sentence, output: Output, last: bool) -> str:
    """The white space between an output and the next: that of the source.

    Chinese and Japanese have no space between sentences. If the target language is another one, it
    needs a space.
    """
    # Markup may follow the stop of an output.
    is_wide = any(stop in output.text for stop in WIDE_STOPS)
    if sentence.space or last or not _ends_wide(sentence.source) or is_wide:
        return sentence.space
    return " "


def _ends_wide(text: str) -> bool:
    return text.rstrip(CLOSERS).endswith(tuple(WIDE_STOPS))


INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""Stands in a decoded text for bytes that are not a character, such as its first ones only."""


class Writer:
    """Encodes the prefixes of outputs, and turns hypotheses into outputs and drafts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def text(self, ids: Sequence[int], unit: Unit) -> str:
        """The text of an output, without characters that are not complete."""
        text = self._tokenizer.decode(ids)
        return text if INCOMPLETE in unit.text else text.replace(INCOMPLETE, "")

    def prefixes(
        self, given: str | Sequence[str] | None, texts: Sequence[Sequence[Unit]]
    ) -> list[Sequence[int]]:
        """The prefix of each unit's output. Only the first unit with tokens of a text has one.

        Args:
            given: The prefix of each text, or one for all.
            texts: The units of each text.
        """
        if given is None:
            return [[] for each in texts for _ in each]
        given = [given] * len(texts) if isinstance(given, str) else as_texts(given, "prefix")
        if len(given) != len(texts):
            raise DataError(f"{len(given)} prefixes and {len(texts)} texts: each text needs one")
        # The space before a word is part of that word's token. So after a prefix that ends in white
        # space, no word could follow.
        encoded = self._tokenizer.encode_batch([prefix.strip() for prefix in given])
        prefixes: list[Sequence[int]] = []
        for ids, each in zip(encoded, texts, strict=True):
            first = next((index for index, unit in enumerate(each) if unit.ids), None)
            prefixes += [ids if index == first else [] for index in range(len(each))]
        return prefixes

    def output(
        self, one: Hypothesis, unit: Unit, alignment: Alignment | None, config: ReadingConfig
    ) -> Output:
        """The output of a unit, with its protected spans."""
        text = self.text(one.ids, unit)
        if not config.raw:
            if alignment is not None:
                alignment = unit.masked.realigned(alignment, text)
            text = unit.masked.restored(text)
        absent = missing(text, unit.terms) if unit.terms else ()
        return Output(text, one.score, one.log_probability, one.finished, alignment, absent)

    def draft(self, before: str, partial: Partial, unit: Unit, config: ReadingConfig) -> Draft:
        """The draft of a text, from the text before a unit and a partial output of the unit."""
        now = self.text(partial.ids, unit)
        # A character may consist of several tokens. It is not stable until all are known.
        stable = self.text(partial.ids[: partial.stable], unit)
        if not config.raw:
            # An output that ends too early, or that loses a number, is replaced.
            may_be_replaced = partial.stable < unit.least_tokens or unit.masked.has_figures
            settled = "" if may_be_replaced else stable_start(before_repetition(stable))
            now, stable = map(unit.masked.begun, (now, settled))
        while not now.startswith(stable):
            stable = stable[:-1]
        return Draft(before + now, len(before) + len(stable))
