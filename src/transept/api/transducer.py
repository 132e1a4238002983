"""A network with its vocabularies: it translates texts, scores translations and shows attention."""

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
    take_apart,
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
"""Returns at most this many sentences; none if none waits now."""
HALF = "\N{REPLACEMENT CHARACTER}"
"""What a decoded text ends in if the last tokens are only the first bytes of a character."""


class Transducer:
    """One network, or several that decide together, with their vocabularies.

    `transept.load` makes one from a model's directory. It computes on the device of its weights.

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
        """Make a translator of networks that read and write these vocabularies.

        Args:
            models: The networks. Several choose each token by the mean of their probabilities.
            source_tokenizer: The vocabulary that they read.
            target_tokenizer: The vocabulary that they write.
            max_source_length: The longest sentence that they were trained on, in tokens with EOS.
            engine: What `translate` searches with. Default: the native engine. Drafts and samples
                always come from the native engine.
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

    # A str is a sequence of strings to Python, and one text to everyone else.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self, texts: str, **options: Unpack[Options]
    ) -> Translation: ...
    @overload
    def translate(self, texts: Sequence[str], **options: Unpack[Options]) -> list[Translation]: ...
    def translate(
        self, texts: str | Sequence[str], **options: Unpack[Options]
    ) -> Translation | list[Translation]:
        """Translate texts: a list of them, or one by itself. An empty text stays empty.

        A text is translated sentence by sentence and put together again with its white space. Line
        breaks end sentences. With the engines `native` and `fused`, the translation of a text does
        not depend on the other texts, except where two translations score the same but for
        rounding. `ctranslate2-int8` rounds more coarsely, and a few translations do depend on them.

        Args:
            texts: What to translate.
            **options: All may be left out.
                beam_size (4): Hypotheses kept alive; 1 is greedy search.
                length_penalty (0.6): The α of Wu et al.; higher prefers longer translations.
                n_best (1): How many outputs to give for each text, at most `beam_size`. For a text
                    of several sentences these are the combinations of the sentences' outputs with
                    the highest sums of scores.
                max_length_factor (1.0), max_length_extra (50): An output ends after so many times
                    the length of its input, plus so many tokens.
                split (True): Translate sentence by sentence.
                source_language ("other"): The language whose rules find the ends of sentences:
                    "en", "de" or "fr".
                too_long ("refuse"): What to do with a sentence that has too many tokens: "refuse"
                    it, or "split" it.
                max_source_length: The most tokens of a sentence; unless given, as many as the
                    longest that the model was trained on.
                alignments (False): Say which words belong together: `output.alignment`.
                sampling: A `SamplingConfig`. With it, `n_best` outputs of each text are drawn at
                    random instead of searched for, so `beam_size` and `length_penalty` must be
                    left out. The same sentence with the same seed draws the same outputs.
                prefix: A text that each output must begin with, or a list with one for each text.
                    A text with a prefix is not split.
                watch: Called with the numbers of sentences done and of all, after each batch.

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

        The native engine searches. So if `engine` is native, the last draft is what `translate`
        gives for this text alone. Half precision (`fused`), 8-bit integers and CTranslate2's search
        may lead to another translation. With `beam_size=1` all of a draft is stable. A wider beam
        may still change what comes after the stable part.

        Example:
            >>> model = transept.load("en-de")
            >>> drafts = [draft.text for draft in model.stream("Good morning.")]
            >>> drafts[-1] == model.translate("Good morning.").text
            True
        """
        request = Request.of(options)
        if request.sampling is not None:
            raise ConfigError([Problem("sampling", "is not for drafts: use `translate`")])
        (text,) = as_texts([text])
        (units,) = take_apart([text], request.config, self.source_tokenizer, self.limits)
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
        """Take texts apart into sentences with their token ids, as `translate` does.

        Args:
            texts: The texts.
            **options: Those of `translate`; `split`, `source_language`, `too_long` and
                `max_source_length` matter here.

        Example:
            >>> (units,) = transept.load("en-de").units(["Good morning. It rains."])
            >>> [unit.text for unit in units]
            ['Good morning.', 'It rains.']
        """
        request = Request.of(options)
        return take_apart(as_texts(texts), request.config, self.source_tokenizer, self.limits)

    def translate_units(
        self, units: Sequence[Unit], **options: Unpack[Options]
    ) -> list[tuple[Output, ...]]:
        """The outputs of sentences that `units` made, best first.

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
        _refuse(options, "prefix", "is not for units: use `translate`")
        return self._decode(units, [[] for _ in units], Request.of(options))

    def translate_feed(
        self, feed: UnitFeed, **options: Unpack[Options]
    ) -> Iterator[list[tuple[int, tuple[Output, ...]]]]:
        """Translate sentences that come while others are being translated.

        The engine `fused` begins with a new sentence as soon as another is done. The other engines
        begin with new sentences when all earlier ones are done. The outputs of sentences that are
        done are yielded with their numbers, counted from 0 in the order in which the feed gave
        them. The iterator ends when all sentences are done and the feed gives no more.

        Args:
            feed: Called with a number, it returns at most that many sentences that `units` made,
                and none if none waits now. It is called again and again, also with 0, and may
                raise an exception to stop.
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
            _refuse(options, key, "is not for a feed: use `translate`")
        request = Request.of(options)
        running: dict[int, Unit] = {}
        numbers = count()

        def inputs(n: int) -> list[Input]:
            units = feed(n)
            running.update((next(numbers), unit) for unit in units)
            # A text without a token is searched for too, so that the numbers of the engine and of
            # the feed agree. Its output is ignored.
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
        # A character may be several tokens. While some of these are missing, it is not stable.
        sure = self.target_tokenizer.decode(partial.ids[: partial.stable]).rstrip(HALF)
        while not now.startswith(sure):
            sure = sure[:-1]
        return Draft(written + now, len(written) + len(sure))

    def _translate(self, texts: Sequence[str], request: Request) -> list[Translation]:
        config = request.config
        taken = take_apart(texts, config, self.source_tokenizer, self.limits)
        prefixes = self._prefixes(request, taken)
        units = [unit for each in taken for unit in each]
        outputs = iter(self._decode(units, prefixes, request))
        put_together = Translation.best if request.sampling is None else Translation.drawn
        return [
            put_together(
                text,
                [Sentence(unit.text, unit.space, next(outputs)) for unit in each],
                config.n_best,
            )
            for text, each in zip(texts, taken, strict=True)
        ]

    def _prefixes(self, request: Request, taken: Sequence[Sequence[Unit]]) -> list[Ids]:
        """The prefix of each unit's output: that of its text for the first unit with a token."""
        given = request.prefix
        if given is None:
            return [[] for each in taken for _ in each]
        texts = [given] * len(taken) if isinstance(given, str) else as_texts(given, "prefix")
        if len(texts) != len(taken):
            raise DataError(f"{len(texts)} prefixes and {len(taken)} texts: each text needs one")
        # The space before a word is part of that word's token. So after a prefix that ends in white
        # space, no word could be found.
        encoded = self.target_tokenizer.encode_batch([text.strip() for text in texts])
        prefixes: list[Ids] = []
        for ids, each in zip(encoded, taken, strict=True):
            first = next((index for index, unit in enumerate(each) if unit.ids), None)
            prefixes += [ids if index == first else [] for index in range(len(each))]
        return prefixes

    def _decode(
        self, units: Sequence[Unit], prefixes: Sequence[Ids], request: Request
    ) -> list[Outputs]:
        """The outputs of each unit; for a unit without a token, empty ones."""
        todo = [index for index, unit in enumerate(units) if unit.ids]
        inputs = [self._input(units[index], prefixes[index], request) for index in todo]
        copies = 1 if request.sampling is None else request.config.n_best
        outputs: list[Outputs] = [(NOTHING,) * copies] * len(units)
        some, found = [units[index] for index in todo], self._search(inputs, request)
        for index, result in zip(todo, self._outputs(some, found, request), strict=True):
            outputs[index] = result
        return outputs

    def _input(self, unit: Unit, prefix: Ids, request: Request) -> Input:
        """The unit for an engine. An output has room for the prefix and the end symbol at least."""
        source = [*unit.ids, EOS_ID]
        longest = max(request.config.max_length(len(source)), len(prefix) + 1)
        return Input(source, self.limits.within(longest), prefix)

    def _search(self, inputs: Sequence[Input], request: Request) -> list[list[Hypothesis]]:
        """The hypotheses of each input: the best ones, or with sampling some drawn at random."""
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
        self, sources: str, targets: str, watch: Watch = no_progress
    ) -> PairScore: ...
    @overload
    def score(
        self, sources: Sequence[str], targets: Sequence[str], watch: Watch = no_progress
    ) -> list[PairScore]: ...
    def score(
        self,
        sources: str | Sequence[str],
        targets: str | Sequence[str],
        watch: Watch = no_progress,
    ) -> PairScore | list[PairScore]:
        """How probable the model finds given translations: forced decoding.

        Each text is taken as one sentence. White space at its ends is ignored. The probability that
        an empty text translates to an empty one is 1.

        Args:
            sources: The texts that were translated.
            targets: The translation of each.
            watch: Called with the numbers of pairs done and of all, after each batch.

        Example:
            >>> model = transept.load("en-de")
            >>> model.score("Good morning.", "Guten Morgen.").log_probability  # doctest: +SKIP
            -1.7
            >>> best = model.translate("Good morning.").outputs[0]
            >>> model.score("Good morning.", best.text).log_probability <= 0
            True
        """
        if isinstance(sources, str) and isinstance(targets, str):
            (pair,) = self._score([sources], [targets], watch)
            return pair
        return self._score(as_texts(sources), as_texts(targets), watch)

    def _score(
        self, sources: Sequence[str], targets: Sequence[str], watch: Watch
    ) -> list[PairScore]:
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} sources and {len(targets)} targets: each needs one of the other"
            )
        source_ids = self._sentences(self.source_tokenizer, sources)
        target_ids = self._sentences(self.target_tokenizer, targets)
        lengths = [
            max(len(source), len(target))
            for source, target in zip(source_ids, target_ids, strict=True)
        ]
        self.limits.check_pairs(lengths)
        log_p: list[list[float]] = [[] for _ in lengths]
        todo = [index for index, length in enumerate(lengths) if length > 1]
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

    def attend(self, source: str, target: str | None = None) -> Attention:
        """What the model attends to in a sentence and its translation, head by head.

        Args:
            source: One sentence; it is not split.
            target: Its translation; unless given, the model's own by beam search. If the model is
                several networks, these translate together, and the attention is that of the first.

        Example:
            >>> model = transept.load("en-de")
            >>> seen = model.attend("The law is just.", "Das Gesetz ist gerecht.").joined()
            >>> seen.cross.queries.words
            ('Das', 'Gesetz', 'ist', 'gerecht', '.', '</s>')
            >>> seen.cross.weights[3, 0].shape  # layer 4, head 1
            torch.Size([6, 6])
        """
        request = Request.of({"split": False})
        text = as_texts([source])[0].strip()
        (units,) = take_apart([text], request.config, self.source_tokenizer, self.limits)
        if not units:
            raise DataError("there is no word in the source to attend to; give a sentence")
        source_ids = [*units[0].ids, EOS_ID]
        if target is None:
            one = self._input(units[0], [], request)
            ((best, *_),) = self.native.search([one], request.config, no_progress)
            target_ids, target = [*best.ids, EOS_ID], self.target_tokenizer.decode(best.ids)
        else:
            (target_ids,) = self._sentences(self.target_tokenizer, as_texts([target], "target"))
        self.limits.check_pairs([max(len(source_ids), len(target_ids))])
        return attention_of(
            self.model,
            Encoded(source, self.source_tokenizer, source_ids),
            Encoded(target, self.target_tokenizer, target_ids),
        )

    def _sentences(self, tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        return [[*ids, EOS_ID] for ids in tokenizer.encode_batch([text.strip() for text in texts])]


def _refuse(options: Options, key: str, why: str) -> None:
    if key in options:
        raise ConfigError([Problem(key, why)])
