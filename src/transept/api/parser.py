"""A network with its vocabularies that parses sentences (section 6.3)."""

from collections.abc import Sequence
from typing import NamedTuple, Unpack, overload

from transept.api.networks import Networks
from transept.api.parses import CheckedParseOptions, Parse, ParseOptions, ParseOutput
from transept.api.texts import LengthLimits, described, is_ordered
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis
from transept.errors import DataError, TooLongError
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.tasks.parsing.constraint import TreeConstraint
from transept.tasks.parsing.linearisation import delinearise, fault_of
from transept.tasks.parsing.repair import repair
from transept.tasks.parsing.tags import with_tags
from transept.tasks.parsing.vocabulary import tags_of
from transept.text.symbols import Symbols
from transept.text.tokenizer import EOS_ID, Tokenizer
from transept.text.trees import WORD, escape

_EXTRA = 3
"""The minimum number of symbols of a tree in addition to its words: two brackets and EOS."""


class _Unit(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    ids: list[int]


class Parser:
    """A network or an ensemble, with the vocabularies of words and symbols.

    `transept.load_parser` loads one from a model's directory. It computes on the device of its
    weights.

    Example:
        >>> parser = transept.load_parser("runs/parsing-small")
        >>> parser.parse("The cat sleeps .", beam_size=2).words
        ('The', 'cat', 'sleeps', '.')
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        source_tokenizer: Tokenizer,
        target_tokenizer: Symbols,
        *,
        max_source_length: int = 250,
    ) -> None:
        """Create a parser.

        Args:
            models: The networks. The probabilities of several networks are averaged.
            source_tokenizer: The vocabulary of words.
            target_tokenizer: The vocabulary of symbols.
            max_source_length: The longest sentence that they were trained on, in tokens with EOS.
        """
        self.networks, self._native = Networks(models), engines().native(models)
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.limits = LengthLimits(max_source_length, [model.config for model in models])
        self.tags = tags_of(target_tokenizer)
        """The symbol that the model writes for a word: its tag, or XX."""

    def __repr__(self) -> str:
        sizes = f"{self.source_tokenizer.vocab_size:,} tokens"
        sizes += f" to {self.target_tokenizer.vocab_size:,} symbols"
        return f"<Parser: {sizes}, {self.networks}>"

    # A str is also a sequence of strings, but it means one sentence here.
    @overload
    def parse(  # type: ignore[overload-overlap]
        self, sentences: str, **options: Unpack[ParseOptions]
    ) -> Parse: ...
    @overload
    def parse(
        self, sentences: Sequence[str] | Sequence[Sequence[str]], **options: Unpack[ParseOptions]
    ) -> list[Parse]: ...
    def parse(
        self,
        sentences: str | Sequence[str] | Sequence[Sequence[str]],
        **options: Unpack[ParseOptions],
    ) -> Parse | list[Parse]:
        """Parse one sentence or a list of sentences.

        A sentence is a list of words, or a text with spaces between words, tokenized as in a
        treebank (`do n't`, `.`). Every tree is well-formed and has exactly these words.

        Args:
            sentences: The sentence or sentences.
            **options: All are optional.
                beam_size (21): The beam size; 1 is greedy search.
                length_penalty (0.3): The α of Wu et al.
                n_best (1): The number of trees per sentence, at most `beam_size`.
                max_length_factor (1.0), max_length_extra (300): The maximum number of symbols of a
                    tree is factor × tokens of the sentence + extra.
                max_unary (5): The maximum number of nested brackets over the same words.
                max_source_length: The maximum number of tokens of a sentence. Default: the longest
                    that the model was trained on.
                constraint ("trees"): "none" does not constrain the output to trees, and repairs
                    it: `output.fault` is the reason.
                tags: The tags of each sentence's words, to insert into the trees. Default: a model
                    that writes XX keeps it, except for punctuation.
                watch: Called with the numbers of finished and of all sentences after each batch.

        Example:
            >>> parser = transept.load_parser("runs/parsing-small")     # doctest: +SKIP
            >>> print(parser.parse("The cat sleeps ."))          # doctest: +SKIP
            (S (NP (XX The) (XX cat)) (VP (XX sleeps)) (. .))
        """
        request = CheckedParseOptions.of(options)
        if isinstance(sentences, str):
            (parse,) = self._parse([sentences], request)
            return parse
        if not is_ordered(sentences):
            raise DataError(
                f"expected a sentence or a list of sentences, got {described(sentences)}"
            )
        return self._parse(list(sentences), request)

    def _parse(
        self, sentences: Sequence[str] | Sequence[Sequence[str]], request: CheckedParseOptions
    ) -> list[Parse]:
        units = self._units(sentences, request)
        found = iter(self._search([unit for unit in units if unit.words], request))
        return [
            Parse(
                unit.words,
                tuple(self._output(unit, one) for one in next(found)) if unit.words else (),
            )
            for unit in units
        ]

    def _units(
        self, sentences: Sequence[str] | Sequence[Sequence[str]], request: CheckedParseOptions
    ) -> list[_Unit]:
        """The words and token ids of the sentences, with end symbols."""
        given = request.tags
        if given is not None and len(given) != len(sentences):
            raise DataError(
                f"{len(given)} lists of tags for {len(sentences)} sentences: each needs one"
            )
        words = [tuple(_words_of(sentence)) for sentence in sentences]
        # As in a prepared corpus: brackets are escaped, and the sentence is stripped.
        texts = [" ".join(map(escape, each)).strip() for each in words]
        encoded = self.source_tokenizer.encode_batch(texts)
        tags = [None] * len(words) if given is None else [tuple(each) for each in given]
        units = [_Unit(*parts) for parts in zip(words, tags, map(_with_eos, encoded), strict=True)]
        self._check_lengths(units, request)
        for number, unit in enumerate(units, start=1):
            if unit.tags is not None and len(unit.tags) != len(unit.words):
                raise DataError(
                    f"sentence {number} has {len(unit.words)} words and {len(unit.tags)} tags: "
                    "each word needs one"
                )
        return units

    def _check_lengths(self, units: Sequence[_Unit], request: CheckedParseOptions) -> None:
        """Reject sentences that are too long. The error lists all of them."""
        longest = self.limits.limit(request.config.max_source_length).tokens
        refused: list[TooLongError] = []
        for number, unit in enumerate(units, start=1):
            n_tokens, what = len(unit.ids), f"the sentence has {len(unit.ids):,} tokens, and"
            if (possible := self.limits.clamp(n_tokens)) < n_tokens:
                what = f"{what} the model has {possible:,} positions"
                refused.append(TooLongError(number, what, None, "omit it"))
            elif n_tokens > longest:
                what = f"{what} the maximum is {longest:,}"
                cure = f"max_source_length={n_tokens} parses it anyway"
                refused.append(TooLongError(number, what, n_tokens, cure))
        if refused:
            refused[0].all = refused
            raise refused[0]

    def _search(
        self, units: Sequence[_Unit], request: CheckedParseOptions
    ) -> list[list[Hypothesis]]:
        config = request.config
        lengths = [
            self.limits.clamp(max(config.max_length(len(unit.ids)), len(unit.words) + _EXTRA))
            for unit in units
        ]

        def trees(batch: Sequence[int]) -> TreeConstraint:
            words = [units[number].words for number in batch]
            longest = [lengths[number] for number in batch]
            device = self.networks.device
            return TreeConstraint(self.target_tokenizer, words, longest, config.max_unary, device)

        inputs = [Input(unit.ids, length) for unit, length in zip(units, lengths, strict=True)]
        constrain = trees if request.constraint == "trees" else None
        return self._native.search(inputs, config, request.watch, constrain)

    def _output(self, unit: _Unit, found: Hypothesis) -> ParseOutput:
        symbols = self.target_tokenizer.symbols_of(found.ids)
        fault = fault_of(symbols, len(unit.words))
        tree = (repair if fault else delinearise)(symbols, unit.words, unit.tags)
        if self.tags == "XX" and unit.tags is None:
            tree = with_tags(tree)
        n_symbols = len(found.ids) + found.finished
        return ParseOutput(tree, found.score, found.log_probability, n_symbols, fault)


def _words_of(sentence: str | Sequence[str]) -> Sequence[str]:
    if isinstance(sentence, str):
        return WORD.findall(sentence)
    if isinstance(sentence, bytes) or not isinstance(sentence, Sequence):
        raise DataError(f"expected a sentence or its words, got {described(sentence)}")
    for word in sentence:
        if not isinstance(word, str):
            raise DataError(f"expected a word, got {described(word)}")
        if not WORD.fullmatch(word):
            raise DataError(f"the word {word!r} is empty or contains a space; split it")
    return sentence


def _with_eos(ids: list[int]) -> list[int]:
    return [*ids, EOS_ID]
