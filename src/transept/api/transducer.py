"""A network with its vocabularies: translation, scoring and attention."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, repeat
from typing import Unpack, overload

from transept.api.attention import Attention, Encoded, attention_of
from transept.api.config import Options, Request
from transept.api.networks import Networks
from transept.api.texts import (
    NOTHING,
    Alignment,
    Draft,
    LengthLimits,
    Output,
    PairScore,
    Sentence,
    Translation,
    Unit,
    as_texts,
    split_texts,
)
from transept.decoding.engine import Engine, Ids, Input
from transept.decoding.step import Hypothesis, Partial
from transept.errors import ConfigError, DataError, Problem
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.progress import Tally, Watch, no_progress
from transept.text.tokenizer import EOS_ID, Tokenizer

Outputs = tuple[Output, ...]
UnitFeed = Callable[[int], Sequence[Unit]]
"""Returns at most this many sentences; empty if none is waiting."""
INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""Ends a decoded text if its last tokens are only the first bytes of a character."""


class Transducer:
    """A network or an ensemble, with its vocabularies.

    `transept.load` loads one from a model's directory. It computes on the device of its weights.

    Example:
        >>> model = transept.load("en-de")
        >>> results = model.translate(["Good morning.", "It rains."], n_best=2)
        >>> [len(result.outputs) for result in results]
        [2, 2]
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        max_source_length: int = 250,
        engine: Engine | None = None,
    ) -> None:
        """Create a translator.

        Args:
            models: The networks. The probabilities of several networks are averaged.
            source_tokenizer: The source vocabulary.
            target_tokenizer: The target vocabulary.
            max_source_length: The longest sentence that they were trained on, in tokens with EOS.
            engine: The decoding engine. Default: the native engine. Streaming and sampling always
                use the native engine.
        """
        self.networks = Networks(models)
        self.engine: Engine = engine or engines().native(models)
        self.native = self.engine.native
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.limits = LengthLimits(max_source_length, [model.config for model in models])

    def __repr__(self) -> str:
        sizes = (
            f"{self.source_tokenizer.vocab_size:,} to {self.target_tokenizer.vocab_size:,} tokens"
        )
        return f"<Transducer: {sizes}, {self.networks}, engine {self.engine.name}>"

    @property
    def model(self) -> Transformer:
        """The network, or the first of several."""
        return self.networks.models[0]

    @property
    def max_source_length(self) -> int:
        """The longest sentence that the model was trained on, in tokens with EOS."""
        return self.limits.trained

    # --- translating -------------------------------------------------------------------------

    # A str is also a sequence of strings, but it means one text here.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, **options: Unpack[Options]
    ) -> Translation: ...
    @overload
    def translate(self, texts: Sequence[str], **options: Unpack[Options]) -> list[Translation]: ...
    def translate(
        self, texts: str | Sequence[str], **options: Unpack[Options]
    ) -> Translation | list[Translation]:
        """Translate one text or a list of texts. An empty text stays empty.

        A text is translated sentence by sentence and keeps its white space. Line breaks end
        sentences. With the engines `native` and `fused`, the translation of a text does not depend
        on the other texts, except if two translations have the same score up to rounding.
        `ctranslate2-int8` rounds more coarsely, and a few translations do depend on them.

        Args:
            texts: The text or texts.
            **options: All are optional.
                beam_size (4): The beam size; 1 is greedy search.
                length_penalty (0.6): The α of Wu et al.; higher prefers longer translations.
                n_best (1): The number of outputs per text, at most `beam_size`. For a text of
                    several sentences, these are the combinations of the sentences' outputs with the
                    highest sums of scores.
                max_length_factor (1.0), max_length_extra (50): The maximum length of an output is
                    factor × tokens of the sentence + extra.
                split (True): Translate sentence by sentence.
                source_language ("other"): The language whose rules find the ends of sentences:
                    "en", "de" or "fr".
                too_long ("refuse"): How to handle a sentence with too many tokens: "refuse" raises
                    an error, "split" splits it.
                max_source_length: The maximum number of tokens of a sentence. Default: the longest
                    that the model was trained on.
                alignments (False): Also return the word alignment: `output.alignment`.
                sampling: A `SamplingConfig`, to sample `n_best` outputs per text instead of
                    searching. Cannot be combined with `beam_size` and `length_penalty`. The same
                    sentence and seed give the same samples.
                prefix: A text with which each output must begin, or a list with one per text. A
                    text with a prefix is not split.
                watch: Called with the numbers of finished and of all sentences after each batch.

        Example:
            >>> model = transept.load("en-de")
            >>> model.translate("Good morning. How are you?").text
            'Guten Morgen! Wie geht es dir?'
        """
        request = Request.of(options)
        if isinstance(texts, str):
            (translation,) = self._translate([texts], request)
            return translation
        return self._translate(as_texts(texts), request)

    def stream(self, text: str, **options: Unpack[Options]) -> Iterator[Draft]:
        """Translate one text, and yield a draft of the translation after each token.

        This always uses the native engine. If `engine` is native, the last draft equals the result
        of `translate` for this text. Half precision (`fused`), 8-bit integers and CTranslate2 may
        lead to another translation. With `beam_size=1`, the whole draft is stable. With a wider
        beam, the text after the stable part may still change.

        Example:
            >>> model = transept.load("en-de")
            >>> drafts = [draft.text for draft in model.stream("Good morning.")]
            >>> drafts[-1] == model.translate("Good morning.").text
            True
        """
        request = Request.of(options)
        if request.sampling is not None:
            raise ConfigError(
                [Problem("sampling", "is not supported for streaming; use `translate`")]
            )
        (text,) = as_texts([text])
        (units,) = split_texts([text], request.config, self.source_tokenizer, self.limits)
        prefixes = self._prefixes(request, [units])
        before: list[Sentence] = []
        for unit, prefix in zip(units, prefixes, strict=True):
            written = Translation.best(text, before, 1).text
            outputs: Outputs = (NOTHING,)
            for partial in self._stream(unit, prefix, request) if unit.ids else ():
                yield self._draft(written, partial)
                outputs = self._outputs([unit], [partial.outputs], request)[0] or outputs
            before.append(Sentence(unit.text, unit.space, outputs))
        whole = Translation.best(text, before, 1).text
        yield Draft(whole, len(whole))

    def units(self, texts: Sequence[str], **options: Unpack[Options]) -> list[list[Unit]]:
        """Split texts into sentences with their token ids, as `translate` does.

        Args:
            texts: The texts.
            **options: Those of `translate`. Only `split`, `source_language`, `target_language`,
                `too_long` and `max_source_length` have an effect.

        Example:
            >>> (units,) = transept.load("en-de").units(["Good morning. It rains."])
            >>> [unit.text for unit in units]
            ['Good morning.', 'It rains.']
        """
        request = Request.of(options)
        return split_texts(as_texts(texts), request.config, self.source_tokenizer, self.limits)

    def translate_units(
        self, units: Sequence[Unit], **options: Unpack[Options]
    ) -> list[tuple[Output, ...]]:
        """Translate sentences returned by `units`. Outputs are best first.

        Args:
            units: The sentences.
            **options: Those of `translate`, except `prefix`.

        Example:
            >>> model = transept.load("en-de")
            >>> (units,) = model.units(["Good morning."])
            >>> ((output, *_),) = model.translate_units(units)
            >>> output.text == model.translate("Good morning.").text
            True
        """
        _reject(options, "prefix", "is not supported for units; use `translate`")
        return self._decode(units, [[] for _ in units], Request.of(options))

    def translate_feed(
        self, feed: UnitFeed, **options: Unpack[Options]
    ) -> Iterator[list[tuple[int, tuple[Output, ...]]]]:
        """Translate sentences that arrive while others are being translated.

        The engine `fused` starts a new sentence as soon as another one is finished. The other
        engines start new sentences when all earlier ones are finished. Finished sentences are
        yielded with their numbers, counted from 0 in the order of the feed. The iterator ends when
        all sentences are finished and the feed is empty.

        Args:
            feed: Called with a number, it returns at most that many sentences of `units`, or none
                if none is waiting. It is called repeatedly, also with 0, and may raise an exception
                to stop.
            **options: Those of `translate`, except `sampling`, `prefix` and `watch`.

        Example:
            >>> model = transept.load("en-de")
            >>> waiting = [unit for (unit,) in model.units(["Good morning.", "It rains."])]
            >>> def feed(n):
            ...     return [waiting.pop() for _ in range(min(n, len(waiting)))]
            >>> found = {}
            >>> for done in model.translate_feed(feed):
            ...     found.update(done)
            >>> sorted(found)
            [0, 1]
        """
        for key in ("sampling", "prefix", "watch"):
            _reject(options, key, "is not supported for a feed; use `translate`")
        request = Request.of(options)
        running: dict[int, Unit] = {}
        numbers = count()

        def inputs(n: int) -> list[Input]:
            units = feed(n)
            running.update((next(numbers), unit) for unit in units)
            # A text without tokens is decoded too, so that the numbers of the engine and the feed
            # agree. Its output is ignored.
            return [
                self._input(unit, [], request) if unit.ids else Input([EOS_ID], max_length=1)
                for unit in units
            ]

        for found in self.engine.search_feed(inputs, request.config):
            units = [running.pop(number) for number, _ in found]
            known = [each if unit.ids else [] for unit, (_, each) in zip(units, found, strict=True)]
            outputs = self._outputs(units, known, request)
            yield [
                (number, each or (NOTHING,))
                for (number, _), each in zip(found, outputs, strict=True)
            ]

    def _stream(self, unit: Unit, prefix: Ids, request: Request) -> Iterator[Partial]:
        return self.native.stream(self._input(unit, prefix, request), request.config)

    def _draft(self, written: str, partial: Partial) -> Draft:
        now = self.target_tokenizer.decode(partial.ids)
        # A character may consist of several tokens. It is not stable until all are known.
        stable = self.target_tokenizer.decode(partial.ids[: partial.stable]).rstrip(INCOMPLETE)
        while not now.startswith(stable):
            stable = stable[:-1]
        return Draft(written + now, len(written) + len(stable))

    def _translate(self, texts: Sequence[str], request: Request) -> list[Translation]:
        config = request.config
        units_of_texts = split_texts(texts, config, self.source_tokenizer, self.limits)
        prefixes = self._prefixes(request, units_of_texts)
        units = [unit for each in units_of_texts for unit in each]
        outputs = iter(self._decode(units, prefixes, request))
        join = Translation.best if request.sampling is None else Translation.drawn
        return [
            join(
                text,
                [Sentence(unit.text, unit.space, next(outputs)) for unit in each],
                config.n_best,
            )
            for text, each in zip(texts, units_of_texts, strict=True)
        ]

    def _prefixes(self, request: Request, texts: Sequence[Sequence[Unit]]) -> list[Ids]:
        """The prefix of each unit's output. Only the first unit with tokens of a text has one."""
        given = request.prefix
        if given is None:
            return [[] for each in texts for _ in each]
        given = [given] * len(texts) if isinstance(given, str) else as_texts(given, "prefix")
        if len(given) != len(texts):
            raise DataError(f"{len(given)} prefixes and {len(texts)} texts: each text needs one")
        # The space before a word is part of that word's token. So after a prefix that ends in white
        # space, no word could follow.
        encoded = self.target_tokenizer.encode_batch([prefix.strip() for prefix in given])
        prefixes: list[Ids] = []
        for ids, each in zip(encoded, texts, strict=True):
            first = next((index for index, unit in enumerate(each) if unit.ids), None)
            prefixes += [ids if index == first else [] for index in range(len(each))]
        return prefixes

    def _decode(
        self, units: Sequence[Unit], prefixes: Sequence[Ids], request: Request
    ) -> list[Outputs]:
        """Decode units. A unit without tokens has empty outputs."""
        todo = [index for index, unit in enumerate(units) if unit.ids]
        inputs = [self._input(units[index], prefixes[index], request) for index in todo]
        copies = 1 if request.sampling is None else request.config.n_best
        outputs: list[Outputs] = [(NOTHING,) * copies] * len(units)
        some, found = [units[index] for index in todo], self._search(inputs, request)
        for index, result in zip(todo, self._outputs(some, found, request), strict=True):
            outputs[index] = result
        return outputs

    def _input(self, unit: Unit, prefix: Ids, request: Request) -> Input:
        """The input for an engine. The maximum length fits at least the prefix and EOS."""
        source = self.source_tokenizer.framed(unit.ids)
        longest = max(request.config.max_length(len(source)), len(prefix) + 1)
        return Input(source, self.limits.clamp(longest), prefix)

    def _search(self, inputs: Sequence[Input], request: Request) -> list[list[Hypothesis]]:
        """Search for, or sample, the hypotheses of each input."""
        config = request.config
        if request.sampling is None:
            return self.engine.search(inputs, config, request.watch)
        return self.native.sample(inputs, request.sampling, config.n_best, request.watch)

    def _outputs(
        self, units: Sequence[Unit], found: Sequence[Sequence[Hypothesis]], request: Request
    ) -> list[Outputs]:
        pairs = [
            (unit.ids, one.ids) for unit, each in zip(units, found, strict=True) for one in each
        ]
        vocabularies = self.source_tokenizer, self.target_tokenizer
        alignments: Iterator[Alignment | None] = repeat(None)
        if request.alignments:
            alignments = iter(self.networks.alignments(pairs, vocabularies))
        return [
            tuple(
                Output(
                    self.target_tokenizer.decode(one.ids),
                    one.score,
                    one.log_probability,
                    one.finished,
                    next(alignments),
                )
                for one in each
            )
            for each in found
        ]

    # --- scoring -----------------------------------------------------------------------------

    @overload
    def score(  # type: ignore[overload-overlap]
        self,
        sources: str,
        targets: str,
        watch: Watch = no_progress,
        target_language: str | None = None,
    ) -> PairScore: ...
    @overload
    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        watch: Watch = no_progress,
        target_language: str | None = None,
    ) -> list[PairScore]: ...
    def score(
        self,
        sources: str | Sequence[str],
        targets: str | Sequence[str],
        watch: Watch = no_progress,
        target_language: str | None = None,
    ) -> PairScore | list[PairScore]:
        """Score given translations by forced decoding.

        Each text is treated as one sentence. White space at its ends is ignored. The probability
        that an empty text translates to an empty one is 1.

        Args:
            sources: The source texts.
            targets: The translation of each.
            watch: Called with the numbers of finished and of all pairs after each batch.
            target_language: The language of the targets, for a model that has several.

        Example:
            >>> model = transept.load("en-de")
            >>> model.score("Good morning.", "Guten Morgen.").log_probability  # doctest: +SKIP
            -1.7
            >>> best = model.translate("Good morning.").outputs[0]
            >>> model.score("Good morning.", best.text).log_probability <= 0
            True
        """
        if isinstance(sources, str) and isinstance(targets, str):
            (pair,) = self._score([sources], [targets], watch, target_language)
            return pair
        return self._score(as_texts(sources), as_texts(targets), watch, target_language)

    def _score(
        self, sources: Sequence[str], targets: Sequence[str], watch: Watch, language: str | None
    ) -> list[PairScore]:
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} sources and {len(targets)} targets: the numbers must be equal"
            )
        tagged = [self.source_tokenizer.target_tag(text.strip(), language) for text in sources]
        encoded = [
            self.source_tokenizer.encode_batch([text for _, text in tagged]),
            self.target_tokenizer.encode_batch([text.strip() for text in targets]),
        ]
        todo = [index for index, pair in enumerate(zip(*encoded, strict=True)) if any(pair)]
        source_ids = [
            self.source_tokenizer.framed([*tag, *ids])
            for (tag, _), ids in zip(tagged, encoded[0], strict=True)
        ]
        target_ids = [[*ids, EOS_ID] for ids in encoded[1]]
        lengths = [max(map(len, pair)) for pair in zip(source_ids, target_ids, strict=True)]
        self.limits.check_pairs(lengths)
        log_p: list[list[float]] = [[] for _ in lengths]
        tally = Tally(watch, len(lengths))
        tally.add(len(lengths) - len(todo))
        for batch in self.networks.batches([lengths[index] for index in todo]):
            chosen = [todo[number] for number in batch]
            found = self.networks.token_log_probabilities(
                [source_ids[index] for index in chosen], [target_ids[index] for index in chosen]
            )
            for index, values in zip(chosen, found, strict=True):
                log_p[index] = values
            tally.add(len(chosen))
        return [
            PairScore(
                source,
                target,
                sum(values, 0.0),
                tuple(self.target_tokenizer.pieces_of(ids[: len(values)])),
                tuple(values),
            )
            for source, target, ids, values in zip(sources, targets, target_ids, log_p, strict=True)
        ]

    # --- attention ---------------------------------------------------------------------------

    def attend(
        self, source: str, target: str | None = None, target_language: str | None = None
    ) -> Attention:
        """The attention weights of a sentence and its translation.

        Args:
            source: One sentence; it is not split.
            target: Its translation. Default: the model's translation by beam search. For an
                ensemble, all networks translate, and the attention is that of the first.
            target_language: The target language, for a model that has several.

        Example:
            >>> model = transept.load("en-de")
            >>> seen = model.attend("The law is just.", "Das Gesetz ist gerecht.").joined()
            >>> seen.cross.queries.words
            ('Das', 'Gesetz', 'ist', 'gerecht', '.', '</s>')
            >>> seen.cross.weights[3, 0].shape  # layer 4, head 1
            torch.Size([6, 6])
        """
        request = Request.of({"split": False, "target_language": target_language})
        text = as_texts([source])[0].strip()
        (units,) = split_texts([text], request.config, self.source_tokenizer, self.limits)
        if not units:
            raise DataError("the source has no words; give a sentence")
        source_ids = self.source_tokenizer.framed(units[0].ids)
        if target is None:
            one = self._input(units[0], [], request)
            ((best, *_),) = self.native.search([one], request.config, no_progress)
            target_ids, target = [*best.ids, EOS_ID], self.target_tokenizer.decode(best.ids)
        else:
            (target,) = as_texts([target], "target")
            target_ids = [*self.target_tokenizer.encode(target.strip()), EOS_ID]
        self.limits.check_pairs([max(len(source_ids), len(target_ids))])
        return attention_of(
            self.model,
            Encoded(source, self.source_tokenizer, source_ids),
            Encoded(target, self.target_tokenizer, target_ids),
        )


def _reject(options: Options, key: str, why: str) -> None:
    if key in options:
        raise ConfigError([Problem(key, why)])
