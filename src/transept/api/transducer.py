"""A network with its vocabularies: translation, scoring and attention."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Unpack, overload

from transept.api.attention import Attention, attend
from transept.api.config import Options, Request, Segmentation
from transept.api.documents import has_markup, translate_formatted
from transept.api.feeding import Drafts, RunningUnits, UnitFeed
from transept.api.files import check_output, read_file, translate_texts, write_translations
from transept.api.guard import Choose, Guard
from transept.api.networks import Networks
from transept.api.scoring import PairScore, Scorer
from transept.api.terms import TermTokens, with_terms
from transept.api.texts import (
    Alignment,
    Draft,
    LengthLimits,
    Output,
    Outputs,
    Reader,
    Sentence,
    Translation,
    Unit,
    WithText,
    Writer,
    as_texts,
    distinct,
)
from transept.decoding.engine import Engine, Ids, Input
from transept.decoding.step import Hypothesis
from transept.documents.opening import FileFormat
from transept.gateway import engines
from transept.model.transformer import Transformer
from transept.progress import Watch, no_progress
from transept.text.plain import MAY_BE_MARKED
from transept.text.tokenizer import Tokenizer

Found = Sequence[Sequence[Hypothesis]]


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
        self.languages = languages
        self.limits = LengthLimits(max_source_length, [model.config for model in models])
        self._terms = TermTokens(target_tokenizer)
        masks = source_tokenizer.masks if target_tokenizer.masks else ()
        self._reader = Reader(source_tokenizer, masks, languages, self.limits)
        self._writer = Writer(target_tokenizer)
        self._guard = Guard(source_tokenizer, target_tokenizer)
        vocabularies = source_tokenizer, target_tokenizer
        self._scorer = Scorer(self.networks, self.native, vocabularies, self.limits)

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
                    occurs twice among them. For a text of several sentences, these are the
                    combinations of the sentences' outputs with the highest sums of scores.
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
                    with `alignments` and `prefix`, without which asterisks and tags around words
                    move with them in plain text too.
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
        given = [texts] if isinstance(texts, str) else as_texts(texts)
        if request.format == "text" and not any(map(MAY_BE_MARKED.search, given)):
            found = self._translate(given, request)
        else:
            found = translate_formatted(given, request, self._translate)
        return found[0] if isinstance(texts, str) else found

    def translate_file(
        self,
        source: str | Path,
        output: str | Path,
        file_format: FileFormat | None = None,
        **options: Unpack[Options],
    ) -> list[Translation]:
        """Translate a file: text, HTML, Markdown, subtitles, office documents, EPUB, PO or XLIFF.

        Only text changes. Formatting moves with its words. Returns the translation of each
        paragraph as HTML, with numbered tags that stand for its formatting.

        Args:
            source: The file.
            output: The translated file. It must not be the source.
            file_format: The format of the file, such as "docx". Default: by the suffix of its name.
            **options: Those of `translate`, except `format`, `n_best`, `alignments` and `prefix`.

        Example:
            >>> _ = Path("note.html").write_text("<p>Good <b>morning</b>.</p>")
            >>> _ = transept.load("en-de").translate_file("note.html", "notiz.html")
            >>> print(Path("notiz.html").read_text())
            <p>Guten <b>Morgen</b>.</p>
        """
        Request.of_text(options, "files", without=("format", "n_best", "alignments", "prefix"))
        source, output = Path(source), Path(output)
        check_output(source, output)
        opened = read_file(source, file_format)
        options["format"] = opened.markup
        found = translate_texts(opened, lambda texts: self.translate(texts, **options))
        language = options.get("target_language") or self.languages[1]
        write_translations(opened, [one.text for one in found], output, language)
        return found

    def stream(self, text: str, **options: Unpack[Options]) -> Iterator[Draft]:
        """Translate one text, and yield a draft of the translation after each token.

        A sentence with protected spans has no drafts until it is translated. A text with asterisks
        or tags around words has one, the result of `translate`. Other texts are translated by the
        native engine, and if `engine` is another one, it may lead to another translation. The text
        after the stable part may still change. Nothing is stable until the draft is too long to be
        replaced as incomplete. Then, with `beam_size=1`, all of it is.

        Example:
            >>> model = transept.load("en-de")
            >>> drafts = [draft.text for draft in model.stream("Good morning.")]
            >>> drafts[-1] == model.translate("Good morning.").text
            True
        """
        request = Request.of_text(options, "streaming", without=("sampling",))
        (text,) = as_texts([text])
        if has_markup(text, request):
            (output,) = self.translate(text, **options).outputs
            yield Draft(output.text, len(output.text), output.missing)
            return
        (units,) = self._units([text], request)
        prefixes = self._writer.prefixes(request.prefix, [units])
        before: list[Sentence] = []
        for unit, prefix in zip(units, prefixes, strict=True):
            written = Translation.best(text, before, 1).text
            found: Sequence[Hypothesis] = ()
            if unit.ids:
                one = self._input(unit, prefix, request)
                for state in self.native.stream(one, request.widened):
                    if not unit.masked.spans:
                        yield self._writer.draft(written, state, unit, request.config)
                    found = state.outputs
            (outputs,) = self._guarded([unit], [found], request) if found else [(unit.kept,)]
            before.append(unit.sentence(outputs))
        (output,) = Translation.best(text, before, 1).outputs
        yield Draft(output.text, len(output.text), output.missing)

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
        request = Request.of_text(options, "units")
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
        request = Request.of_text(options, "units", without=("prefix", "glossary", "keep"))
        return self._decode(units, [[] for _ in units], request)

    def translate_feed(
        self, feed: UnitFeed, *, drafts: Drafts | None = None, **options: Unpack[Options]
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
            drafts: Called after each token, if the engine is native. Other engines do not have
                partial outputs, and a sentence with protected spans has no drafts.
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
        unsupported = ("sampling", "prefix", "glossary", "keep", "watch")
        request = Request.of_text(options, "a feed", without=unsupported)
        running = RunningUnits(feed, drafts, self._writer, request.config)
        input_of = partial(self._input, prefix=[], request=request)
        inputs = partial(running.inputs, input_of=input_of)
        if drafts is not None and self.engine is self.native:
            searched = self.native.search_feed(inputs, request.widened, running.partial)
        else:
            searched = self.engine.search_feed(inputs, request.widened)
        for found in searched:
            yield running.finish(found, partial(self._guarded, request=request))

    def _translate(self, texts: Sequence[str], request: Request) -> list[Translation]:
        units_of_texts = self._units(texts, request)
        prefixes = self._writer.prefixes(request.prefix, units_of_texts)
        units = [unit for each in units_of_texts for unit in each]
        outputs = iter(self._decode(units, prefixes, request))
        join = Translation.best if request.sampling is None else Translation.drawn
        return [
            join(text, [unit.sentence(next(outputs)) for unit in each], request.config.n_best)
            for text, each in zip(texts, units_of_texts, strict=True)
        ]

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
        """The outputs of units. A unit without a complete output is translated again."""
        if request.sampling is not None or request.config.raw:
            return self._outputs(units, found, request)
        outputs = self._outputs(units, found, request, Unit.complete)
        if all(outputs):
            return outputs
        whole_beam = replace(request.config, n_best=request.config.beam_size)

        def decode(units: Sequence[Unit], choose: Choose | None) -> list[Outputs]:
            inputs = [self._input(unit, [], request) for unit in units]
            found = self.engine.search(inputs, whole_beam, no_progress)
            return self._outputs(units, found, request, choose)

        return self._guard.complete(units, outputs, decode)

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
        if request.sampling is None:
            return self.engine.search(inputs, request.widened, request.watch)
        n_best = request.config.n_best
        return self.native.sample(inputs, request.sampling, n_best, request.watch)

    def _outputs(
        self,
        units: Sequence[Unit],
        found: Found,
        request: Request,
        choose: Choose | None = None,
    ) -> list[Outputs]:
        if choose is not None:
            found = [
                [one for one, _ in choose(unit, self._with_text(unit, each))]
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
            tuple(self._writer.output(one, unit, next(alignments), request.config) for one in each)
            for unit, each in zip(units, found, strict=True)
        ]
        if request.sampling is not None:
            return outputs
        return [distinct(each)[: request.config.n_best] for each in outputs]

    def _with_text(self, unit: Unit, found: Sequence[Hypothesis]) -> Iterator[WithText]:
        return ((one, self._writer.text(one.ids, unit)) for one in found)

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
        options = watch, target_language, segmentation
        if isinstance(sources, str) and isinstance(targets, str):
            (pair,) = self._scorer.score([sources], [targets], *options)
            return pair
        return self._scorer.score(as_texts(sources), as_texts(targets), *options)

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
            >>> seen.cross.weights[2, 0].shape  # layer 3, head 1
            torch.Size([6, 6])
        """
        return attend(self, source, target, target_language)
