"""A network that parses, with its vocabularies: sentences in, trees out (section 6.3)."""

from collections.abc import Sequence
from typing import NamedTuple, Unpack, overload

from transept.api.networks import Networks
from transept.api.parses import CheckedParseOptions, Parse, ParseOptions, ParseOutput
from transept.api.texts import LengthLimits, TooLongError, described, in_order
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis
from transept.errors import DataError
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

_ROOM = 3
"""The brackets of a root and the end symbol: a tree takes as much beside its words."""


class _Unit(NamedTuple):
    words: tuple[str, ...]
    tags: tuple[str, ...] | None
    ids: list[int]


class Parser:
    """One network, or several that decide together, with the vocabularies of words and symbols.

    `transept.load_parser` makes one from a model's directory. It computes where its weights are.

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
        """Take networks that read and write these vocabularies.

        Args:
            models: The networks; of several, the mean of their probabilities counts.
            source_tokenizer: What they read.
            target_tokenizer: The symbols that they write.
            max_source_length: The longest sentence that they were trained on, in tokens with EOS.
        """
        self.networks, self._native = Networks(models), engines().native(models)
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.limits = LengthLimits(max_source_length, [model.config for model in models])
        self.tags = tags_of(target_tokenizer)
        """What the model writes for words: their tags, or XX for all of them."""

    def __repr__(self) -> str:
        sizes = f"{self.source_tokenizer.vocab_size:,} tokens"
        sizes += f" to {self.target_tokenizer.vocab_size:,} symbols"
        return f"<Parser: {sizes}, {self.networks}>"

    # A str is a sequence of strings to Python, and one sentence to everyone else.
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
        """Parse sentences: a list of them, or one by itself.

        A sentence is its words, as a treebank has them (`do n't`, `.`): a list, or a text with
        spaces between them. Every tree is well-formed and over exactly these words.

        Args:
            sentences: What to parse.
            **options: All may be left out.
                beam_size (21): Hypotheses kept alive; 1 is greedy search.
                length_penalty (0.3): The α of Wu et al.
                n_best (1): How many trees to give of each sentence, at most `beam_size`.
                max_length_factor (1.0), max_length_extra (300): A tree has at most so many times
                    as many symbols as its input has tokens, plus so many.
                max_unary (5): How many brackets there may be over the same words.
                max_source_length: The longest sentence, in tokens; that of the training unless
                    given.
                constraint ("trees"): "none" lets the model write what it likes, and repairs it:
                    `output.fault` says what was wrong.
                tags: The tags of each sentence's words, to write into the trees. Without, a model
                    that writes XX leaves it, but for punctuation.
                watch: Called with the numbers of sentences done and of all, after each batch.

        Example:
            >>> parser = transept.load_parser("runs/parsing-small")     # doctest: +SKIP
            >>> print(parser.parse("The cat sleeps ."))          # doctest: +SKIP
            (S (NP (XX The) (XX cat)) (VP (XX sleeps)) (. .))
        """
        request = CheckedParseOptions.of(options)
        if isinstance(sentences, str):
            (parse,) = self._parse([sentences], request)
            return parse
        if not in_order(sentences):
            raise DataError(
                f"expected a list of sentences, or one sentence, and got {described(sentences)}"
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
        """The sentences in words and in tokens, with end symbols."""
        given = request.tags
        if given is not None and len(given) != len(sentences):
            raise DataError(
                f"{len(given)} lines of tags and {len(sentences)} sentences: each needs its own"
            )
        words = [tuple(_words_of(sentence)) for sentence in sentences]
        # As the corpus was prepared: brackets escaped, and nothing around the sentence.
        texts = [" ".join(map(escape, each)).strip() for each in words]
        encoded = self.source_tokenizer.encode_batch(texts)
        tags = [None] * len(words) if given is None else [tuple(each) for each in given]
        units = [_Unit(*parts) for parts in zip(words, tags, map(_ended, encoded), strict=True)]
        self._check_lengths(units, request)
        for number, unit in enumerate(units, start=1):
            if unit.tags is not None and len(unit.tags) != len(unit.words):
                raise DataError(
                    f"sentence {number} has {len(unit.words)} words and {len(unit.tags)} tags: "
                    "each word needs one"
                )
        return units

    def _check_lengths(self, units: Sequence[_Unit], request: CheckedParseOptions) -> None:
        """Refuse sentences that are too long, all at once: finding one takes tokens of all."""
        longest = self.limits.asked(request.config.max_source_length).tokens
        refused: list[TooLongError] = []
        for number, unit in enumerate(units, start=1):
            n_tokens, what = len(unit.ids), f"the sentence has {len(unit.ids):,} tokens, and"
            if (possible := self.limits.within(n_tokens)) < n_tokens:
                what = f"{what} the model knows {possible:,} positions"
                refused.append(TooLongError(number, what, None, "leave it out"))
            elif n_tokens > longest:
                what = f"{what} the longest may have {longest:,}"
                cure = f"max_source_length={n_tokens} parses it all the same"
                refused.append(TooLongError(number, what, n_tokens, cure))
        if refused:
            refused[0].all = refused
            raise refused[0]

    def _search(
        self, units: Sequence[_Unit], request: CheckedParseOptions
    ) -> list[list[Hypothesis]]:
        config = request.config
        lengths = [
            self.limits.within(max(config.max_length(len(unit.ids)), len(unit.words) + _ROOM))
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
        raise DataError(f"expected a sentence, or its words, and got {described(sentence)}")
    for word in sentence:
        if not isinstance(word, str):
            raise DataError(f"expected a word, and got {described(word)}")
        if not WORD.fullmatch(word):
            raise DataError(f"the word {word!r} is empty or holds a space; take it apart")
    return sentence


def _ended(ids: list[int]) -> list[int]:
    return [*ids, EOS_ID]
