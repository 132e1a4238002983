"""A network with its vocabularies: translation, scoring and attention."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, repeat
from typing import Unpack, get_args, overload

from transept.api.attention import Attention, Encoded, attention_of
from transept.api.config import Options, Request, Segmentation
from transept.api.documents import Document
from transept.api.guard import Guard
from transept.api.networks import Networks
from transept.api.segmentation import likeliest_segmentations
from transept.api.terms import TermTokens, with_terms
from transept.api.texts import (
    Alignment,
    Draft,
    LengthLimits,
    Output,
    PairScore,
    Reader,
    Sentence,
    TooLongError,
    Translation,
    Unit,
    as_texts,
    distinct,
)
from transept.decoding.engine import Engine, Ids, Input
from transept.decoding.step import Hypothesis, Partial
from transept.errors import ConfigError, DataError, Problem
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.progress import Watch, no_progress
from transept.text.glossary import missing
from transept.text.surface import stable_start
from transept.text.tokenizer import EOS_ID, Tokenizer

Outputs = tuple[Output, ...]
Found = Sequence[Sequence[Hypothesis]]
UnitFeed = Callable[[int], Sequence[Unit]]
"""Returns at most this many sentences; empty if none is waiting."""
INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""Stands in a decoded text for bytes that are not a character, such as its first ones only."""


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
        languages: tuple[str, str] = ("", ""),
    ) -> None:
        """Create a translator.

        Args:
            models: The networks. The probabilities of several networks are averaged.
            source_tokenizer: The source vocabulary.
            target_tokenizer: The target vocabulary.
            max_source_length: The longest sentence that they were trained on, in tokens with EOS.
            engine: The decoding engine. Default: the native engine. Streaming and sampling always
                use the native engine.
            languages: The source and the target language, such as `("en", "de")`. Numbers are then
                written as in the target language.
        """
        self.networks = Networks(models)
        self.engine: Engine = engine or engines().native(models)
        self.native = self.engine.native
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.limits = LengthLimits(max_source_length, [model.config for model in models])
        self._terms = TermTokens(target_tokenizer)
        masks = source_tokenizer.masks if target_tokenizer.masks else ()
        self._reader = Reader(source_tokenizer, masks, languages, self.limits)
        self._guard = Guard(source_tokenizer, target_tokenizer)

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
        """Translate one text or a list of texts. A text without letters and digits is kept.

        A text is translated sentence by sentence and keeps its white space. Line breaks end
        sentences. With the engines `native` and `fused`, the translation of a text does not depend
        on the other texts, except if two translations have the same score up to rounding.
        `ctranslate2-int8` rounds more coarsely, and a few translations do depend on them.

        Args:
            texts: The text or texts.
            **options: All are optional.
                beam_size (4): The beam size; 1 is greedy search.
                length_penalty (0.6): The α of Wu et al.; higher prefers longer translations.
                n_best (1): The maximum number of outputs per text, at most `beam_size`. No text
                    occurs twice among them. For a text of
                    several sentences, these are the combinations of the sentences' outputs with the
                    highest sums of scores.
                max_length_factor (1.0), max_length_extra (50): The maximum length of an output is
                    factor × tokens of the sentence + extra.
                split (True): Translate sentence by sentence.
                source_language ("other"): The language whose rules find the ends of sentences:
                    "en", "de" or "fr".
                too_long ("split"): How to handle a sentence with too many tokens: "split" splits
                    it, and `Translation.too_long` has its length; "refuse" raises an error.
                max_source_length: The maximum number of tokens of a sentence. Default: the longest
                    that the model was trained on.
                format ("text"): "html" or "markdown" for documents: markup between sentences is
                    kept, and markup inside a sentence moves with its words. Cannot be combined
                    with `alignments` and `prefix`.
                alignments (False): Also return the word alignment: `output.alignment`.
                sampling: A `SamplingConfig`, to sample `n_best` outputs per text instead of
                    searching. Cannot be combined with `beam_size` and `length_penalty`. The same
                    sentence and seed give the same samples.
                prefix: A text with which each output must begin, or a list with one per text. A
                    text with a prefix is not split.
                glossary: Required translations of terms: a `Glossary`, a mapping or the path of a
                    file. A sentence with a term is translated by the native engine with a wider
                    beam. `output.missing` names terms that could not be placed.
                keep: Words that are not translated, in addition to the glossary.
                watch: Called with the numbers of finished and of all sentences after each batch.

        Example:
            >>> model = transept.load("en-de")
            >>> model.translate("Good morning. How are you?").text
            'Guten Morgen. Wie geht es dir?'
        """
        request = Request.of(options)
        translated = self._translate if request.format == "text" else self._translate_documents
        if isinstance(texts, str):
            (translation,) = translated([texts], request)
            return translation
        return translated(as_texts(texts), request)

    def stream(self, text: str, **options: Unpack[Options]) -> Iterator[Draft]:
        """Translate one text, and yield a draft of the translation after each token.

        A sentence with protected spans has no drafts until it is translated.

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
        _reject_documents(request, "streaming")
        if request.sampling is not None:
            raise ConfigError(
                [Problem("sampling", "is not supported for streaming; use `translate`")]
            )
        (text,) = as_texts([text])
        (units,) = self._units([text], request)
        prefixes = self._prefixes(request, [units])
        before: list[Sentence] = []
        for unit, prefix in zip(units, prefixes, strict=True):
            written = Translation.best(text, before, 1).text
            outputs: Outputs = (unit.kept,)
            found: Sequence[Hypothesis] = ()
            for partial in self._stream(unit, prefix, request) if unit.ids else ():
                if not unit.masked.spans:
                    yield self._draft(written, partial, unit, request)
                found = partial.outputs
            if found:
                (outputs,) = self._guarded([unit], [found], request)
            before.append(unit.sentence(outputs))
        (whole,) = Translation.best(text, before, 1).outputs
        yield Draft(whole.text, len(whole.text), whole.missing)

    def units(self, texts: Sequence[str], **options: Unpack[Options]) -> list[list[Unit]]:
        """Split texts into sentences with their token ids, as `translate` does.

        Args:
            texts: The texts.
            **options: Those of `translate`. Only `split`, `source_language`, `target_language`,
                `too_long`, `max_source_length`, `glossary` and `keep` have an effect.

        Example:
            >>> (units,) = transept.load("en-de").units(["Good morning. It rains."])
            >>> [unit.text for unit in units]
            ['Good morning.', 'It rains.']
        """
        request = Request.of(options)
        _reject_documents(request, "units")
        return self._units(as_texts(texts), request)

    def _units(self, texts: Sequence[str], request: Request) -> list[list[Unit]]:
        units = self._reader.units(texts, request.config)
        if request.glossary is None:
            return units
        return [with_terms(each, request.glossary) for each in units]

    def translate_units(
        self, units: Sequence[Unit], **options: Unpack[Options]
    ) -> list[tuple[Output, ...]]:
        """Translate sentences returned by `units`. Outputs are best first.

        Args:
            units: The sentences, with the terms of the glossary given to `units`.
            **options: Those of `translate`, except `prefix`, `glossary` and `keep`.

        Example:
            >>> model = transept.load("en-de")
            >>> (units,) = model.units(["Good morning."])
            >>> ((output, *_),) = model.translate_units(units)
            >>> output.text == model.translate("Good morning.").text
            True
        """
        for key in ("prefix", "glossary", "keep"):
            _reject(options, key, "is not supported for units; use `translate`")
        request = Request.of(options)
        _reject_documents(request, "units")
        return self._decode(units, [[] for _ in units], request)

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
            **options: Those of `translate`, except `sampling`, `prefix`, `glossary`, `keep` and
                `watch`.

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
        for key in ("sampling", "prefix", "glossary", "keep", "watch"):
            _reject(options, key, "is not supported for a feed; use `translate`")
        request = Request.of(options)
        _reject_documents(request, "a feed")
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

        for found in self.engine.search_feed(inputs, request.widened):
            units = [running.pop(number) for number, _ in found]
            with_words = [at for at, unit in enumerate(units) if unit.ids]
            outputs = iter(
                self._guarded(
                    [units[at] for at in with_words], [found[at][1] for at in with_words], request
                )
            )
            yield [
                (number, next(outputs) if unit.ids else (unit.kept,))
                for (number, _), unit in zip(found, units, strict=True)
            ]

    def _stream(self, unit: Unit, prefix: Ids, request: Request) -> Iterator[Partial]:
        return self.native.stream(self._input(unit, prefix, request), request.widened)

    def _draft(self, written: str, partial: Partial, unit: Unit, request: Request) -> Draft:
        now = self._text(partial.ids, unit)
        # A character may consist of several tokens. It is not stable until all are known.
        stable = self._text(partial.ids[: partial.stable], unit)
        if not request.config.raw:
            now, stable = (unit.masked.begun(text) for text in (now, stable_start(stable)))
        while not now.startswith(stable):
            stable = stable[:-1]
        return Draft(written + now, len(written) + len(stable))

    def _translate(self, texts: Sequence[str], request: Request) -> list[Translation]:
        config = request.config
        units_of_texts = self._units(texts, request)
        prefixes = self._prefixes(request, units_of_texts)
        units = [unit for each in units_of_texts for unit in each]
        outputs = iter(self._decode(units, prefixes, request))
        join = Translation.best if request.sampling is None else Translation.drawn
        return [
            join(
                text,
                [unit.sentence(next(outputs)) for unit in each],
                config.n_best,
            )
            for text, each in zip(texts, units_of_texts, strict=True)
        ]

    def _translate_documents(self, texts: Sequence[str], request: Request) -> list[Translation]:
        config = request.config
        documents = [
            Document.of(text, request.format, config.source_language, config.split)
            for text in texts
        ]
        owners = [n for n, one in enumerate(documents, start=1) for _ in one.sentences]
        sentences = [sentence for one in documents for sentence in one.sentences]
        inner = replace(
            request,
            config=replace(config, split=False),
            alignments=any(one.is_marked for one in documents),
        )
        try:
            found = iter(self._translate(sentences, inner))
        except TooLongError as error:
            number = owners[error.number - 1]
            raise TooLongError(number, error.what, error.enough, error.cure) from error
        join = Document.assemble if request.sampling is None else Document.drawn
        return [join(one, [next(found) for _ in one.sentences], config.n_best) for one in documents]

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
        """Decode units. A unit without tokens is kept."""
        todo = [index for index, unit in enumerate(units) if unit.ids]
        inputs = [self._input(units[index], prefixes[index], request) for index in todo]
        copies = 1 if request.sampling is None else request.config.n_best
        outputs: list[Outputs] = [(unit.kept,) * copies for unit in units]
        some, found = [units[index] for index in todo], self._search(inputs, request)
        for index, result in zip(todo, self._guarded(some, found, request), strict=True):
            outputs[index] = result
        return outputs

    def _guarded(self, units: Sequence[Unit], found: Found, request: Request) -> list[Outputs]:
        """The outputs of units. A unit without a usable output is translated again."""
        if request.sampling is not None or request.config.raw:
            return self._outputs(units, found, request)
        outputs = self._outputs(units, found, request, _is_usable)
        if all(outputs):
            return outputs
        again = replace(request, watch=no_progress)

        def searched(units: Sequence[Unit]) -> Found:
            return self._search([self._input(unit, [], again) for unit in units], again)

        return self._guard.complete(
            units,
            outputs,
            attempt=lambda some: self._outputs(some, searched(some), again, _is_usable),
            best_effort=lambda some: self._outputs(some, searched(some), again),
        )

    def _input(self, unit: Unit, prefix: Ids, request: Request) -> Input:
        """The input for an engine. The maximum length fits at least the prefix and EOS."""
        source = self.source_tokenizer.framed(unit.ids)
        longest = max(request.config.max_length(len(source)), len(prefix) + 1)
        one = Input(source, self.limits.clamp(longest), prefix)
        if not unit.required and not unit.terms:
            return one
        required, spelling = self._terms.required(unit)
        return one._replace(required=required, spelling=spelling)

    def _search(self, inputs: Sequence[Input], request: Request) -> list[list[Hypothesis]]:
        """Search for, or sample, the hypotheses of each input."""
        config = request.config
        if request.sampling is None:
            return self.engine.search(inputs, request.widened, request.watch)
        return self.native.sample(inputs, request.sampling, config.n_best, request.watch)

    def _outputs(
        self,
        units: Sequence[Unit],
        found: Found,
        request: Request,
        is_wanted: Callable[[str, Unit, Hypothesis], bool] = lambda *_: True,
    ) -> list[Outputs]:
        found = [
            [one for one in each if is_wanted(self._text(one.ids, unit), unit, one)]
            for unit, each in zip(units, found, strict=True)
        ]
        pairs = [
            (unit.ids, one.ids) for unit, each in zip(units, found, strict=True) for one in each
        ]
        vocabularies = self.source_tokenizer, self.target_tokenizer
        alignments: Iterator[Alignment | None] = repeat(None)
        if request.alignments:
            alignments = iter(self.networks.alignments(pairs, vocabularies))
        outputs = [
            tuple(self._output(one, unit, next(alignments), request) for one in each)
            for unit, each in zip(units, found, strict=True)
        ]
        if request.sampling is not None:
            return outputs
        return [distinct(each)[: request.config.n_best] for each in outputs]

    def _output(
        self, one: Hypothesis, unit: Unit, alignment: Alignment | None, request: Request
    ) -> Output:
        text = self._text(one.ids, unit)
        if not request.config.raw:
            if alignment is not None:
                alignment = unit.masked.realigned(alignment, text)
            text = unit.masked.restored(text)
        absent = missing(text, unit.terms) if unit.terms else ()
        return Output(text, one.score, one.log_probability, one.finished, alignment, absent)

    def _text(self, ids: Ids, unit: Unit) -> str:
        """The text of an output, without characters that are not complete."""
        text = self.target_tokenizer.decode(ids)
        return text if INCOMPLETE in unit.text else text.replace(INCOMPLETE, "")

    # --- scoring -----------------------------------------------------------------------------

    @overload
    def score(  # type: ignore[overload-overlap]
        self,
        sources: str,
        targets: str,
        watch: Watch = no_progress,
        target_language: str | None = None,
        segmentation: Segmentation = "likeliest",
    ) -> PairScore: ...
    @overload
    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        watch: Watch = no_progress,
        target_language: str | None = None,
        segmentation: Segmentation = "likeliest",
    ) -> list[PairScore]: ...
    def score(
        self,
        sources: str | Sequence[str],
        targets: str | Sequence[str],
        watch: Watch = no_progress,
        target_language: str | None = None,
        segmentation: Segmentation = "likeliest",
    ) -> PairScore | list[PairScore]:
        """Score given translations by forced decoding.

        Each text is treated as one sentence. White space at its ends is ignored. The probability
        that an empty text translates to an empty one is 1.

        A text has many segmentations into subwords. The score is log P of the likeliest one that a
        beam search over segmentations finds, or of the tokenizer's, whichever is higher. So the
        score of the best translation of a sentence is the log-probability that `translate`
        returns, or that of a likelier segmentation.

        Args:
            sources: The source texts.
            targets: The translation of each.
            watch: Called with the numbers of finished and of all pairs after each batch.
            target_language: The language of the targets, for a model that has several.
            segmentation: "canonical" scores only the tokenizer's segmentation, as in training. It
                takes about a third of the time.

        Example:
            >>> model = transept.load("en-de")
            >>> model.score("Good morning.", "Guten Morgen.").log_probability  # doctest: +SKIP
            -1.7
            >>> best = model.translate("Good morning.", raw=True).outputs[0]
            >>> scored = model.score("Good morning.", best.text)
            >>> round(scored.log_probability - best.log_probability, 3) == 0
            True
        """
        if segmentation not in get_args(Segmentation):
            what = f"{segmentation!r} is not one of 'likeliest', 'canonical'"
            raise ConfigError([Problem("segmentation", what)])
        options = watch, target_language, segmentation
        if isinstance(sources, str) and isinstance(targets, str):
            (pair,) = self._score([sources], [targets], *options)
            return pair
        return self._score(as_texts(sources), as_texts(targets), *options)

    def _score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        watch: Watch,
        language: str | None,
        segmentation: Segmentation,
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
        pairs: list[tuple[Ids, Ids]] = [
            (self.source_tokenizer.framed([*tag, *source]), [*target, EOS_ID])
            for (tag, _), source, target in zip(tagged, *encoded, strict=True)
        ]
        self.limits.check_pairs(max(map(len, pair)) for pair in pairs)
        todo = [index for index, pair in enumerate(zip(*encoded, strict=True)) if any(pair)]
        empty = len(pairs) - len(todo)
        some = [pairs[index] for index in todo]
        found = self._scored(some, segmentation, lambda done, _: watch(done + empty, len(pairs)))
        scored = dict(zip(todo, found, strict=True))
        return [
            PairScore(
                source,
                target,
                sum(values, 0.0),
                tuple(self.target_tokenizer.pieces_of(ids)),
                tuple(values),
            )
            for index, (source, target) in enumerate(zip(sources, targets, strict=True))
            for ids, values in [scored.get(index, ((), []))]
        ]

    def _scored(
        self, pairs: Sequence[tuple[Ids, Ids]], segmentation: Segmentation, watch: Watch
    ) -> list[tuple[Ids, list[float]]]:
        """The target ids of each pair, and their log-probabilities."""
        is_canonical = segmentation == "canonical"
        log_p = self.networks.log_probabilities(pairs, watch if is_canonical else no_progress)
        scored = [(ids, values) for (_, ids), values in zip(pairs, log_p, strict=True)]
        if is_canonical:
            return scored
        found = likeliest_segmentations(
            self.native, self.target_tokenizer, pairs, self.limits, watch
        )
        others = [index for index, ids in enumerate(found) if ids != pairs[index][1]]
        log_p = self.networks.log_probabilities([(pairs[i][0], found[i]) for i in others])
        for index, values in zip(others, log_p, strict=True):
            if sum(values) > sum(scored[index][1]):
                scored[index] = found[index], values
        return scored

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
        # The network sees the sentence as it is, so that the figure shows its words.
        request = Request.of(
            {
                "split": False,
                "too_long": "refuse",
                "target_language": target_language,
                "raw": True,
            }
        )
        text = as_texts([source])[0].strip()
        (units,) = self._reader.units([text], request.config)
        if not units or not units[0].ids:
            raise DataError("the source has no words; give a sentence")
        source_ids = self.source_tokenizer.framed(units[0].ids)
        if target is None:
            one = self._input(units[0], [], request)
            ((best, *_),) = self.native.search([one], request.config, no_progress)
            target_ids, target = [*best.ids, EOS_ID], self._text(best.ids, units[0])
        else:
            (target,) = as_texts([target], "target")
            target_ids = [*self.target_tokenizer.encode(target.strip()), EOS_ID]
        self.limits.check_pairs([max(len(source_ids), len(target_ids))])
        return attention_of(
            self.model,
            Encoded(source, self.source_tokenizer, source_ids),
            Encoded(target, self.target_tokenizer, target_ids),
        )


def _is_usable(text: str, unit: Unit, one: Hypothesis) -> bool:
    """Whether an output is complete, and its text has all spans and does not repeat itself."""
    if not unit.masked.is_kept(text):
        return False
    # Another attempt would be without the terms, or with the same result.
    return bool(unit.terms) or (one.finished and not unit.masked.is_loop(text))


def _reject(options: Options, key: str, why: str) -> None:
    if key in options:
        raise ConfigError([Problem(key, why)])


def _reject_documents(request: Request, what: str) -> None:
    if request.format != "text":
        why = f"{request.format} is not supported for {what}; use `translate`"
        raise ConfigError([Problem("format", why)])
