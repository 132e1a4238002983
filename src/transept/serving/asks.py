"""What a model can be asked for; equal ones are answered in one batch."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from transept.api.attention import Attention, AttentionMap, Kind
from transept.api.config import TranslationConfig
from transept.api.parses import Parse
from transept.api.results import Draft, Output, PairScore, Sentence, Translation
from transept.api.transducer import Transducer
from transept.api.units import Limit, TooLongError, Unit, take_apart
from transept.errors import DataError
from transept.serving.models import Served, ServedParser
from transept.serving.texts import Outputs, Text
from transept.text.tokenizer import Tokenizer

CUT = TranslationConfig(split=False, too_long="split")


@dataclass(frozen=True)
class Translate:
    """The best outputs of each sentence, as many as the beam is wide."""

    model: Served
    beam_size: int
    length_penalty: float
    alignments: bool = False
    """Whether it is to be known which words belong together: markup goes with them."""

    def units(self, sentences: Sequence[str]) -> list[list[Unit]]:
        """Each sentence as what is decoded at once: one that is too long for the model is cut."""
        return _units(self.model.transducer, sentences)

    def size(self, item: Unit) -> int:
        """Tokens to read, and about as many to write."""
        return len(item.ids) + 1

    def run(self, items: Sequence[Unit], watch: Callable[[], None]) -> list[Outputs]:
        """Outputs of units."""
        texts = [unit.text for unit in items]
        return self._outputs(self.model.transducer, texts, self.alignments, watch)

    def run_feed(
        self, feed: Callable[[int], Sequence[Unit]]
    ) -> Iterator[list[tuple[int, Outputs]]]:
        """Outputs of units, of which some come while others are under way."""
        transducer = self.model.transducer

        def texts(n: int) -> list[str]:
            # Who comes after another one was loaded is for that one.
            is_old = self.model.transducer is not transducer
            return [unit.text for unit in feed(0 if is_old else n)]

        for found in transducer.translate_feed(
            texts,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=self.beam_size,
            alignments=self.alignments,
        ):
            yield [(number, translation.outputs) for number, translation in found]

    def joined(
        self, sentences: Sequence[str], units: Sequence[Sequence[Unit]], outputs: Iterable[Outputs]
    ) -> list[Outputs]:
        """Outputs of sentences, from those of their units one after another."""
        each = iter(outputs)
        return [
            _together(sentence, parts, [next(each) for _ in parts], self.beam_size)
            for sentence, parts in zip(sentences, units, strict=True)
        ]

    def _outputs(
        self,
        transducer: Transducer,
        items: Sequence[str],
        alignments: bool,
        watch: Callable[[], None],
    ) -> list[Outputs]:
        translations = transducer.translate(
            items,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=self.beam_size,
            alignments=alignments,
            split=False,
            too_long="split",
            watch=lambda done, total: watch(),
        )
        return [translation.outputs for translation in translations]

    def drafts(self, text: Text) -> Generator[Draft, None, None]:
        """The best translation of a text, as it grows token by token."""
        transducer = self.model.transducer  # the same to the end, even if another is loaded
        done: list[Outputs] = []
        for part in text.with_words:
            before = text.before_next(done)
            if part.inside:
                # Where its markup goes is known when all of it is; but others have their turns.
                (units,) = _units(transducer, [part.text])
                outputs = []
                for unit in units:
                    outputs += self._outputs(transducer, [unit.text], True, lambda: None)
                    yield Draft(before, len(before))
                done.append(_together(part.text, units, outputs, 1))
                continue
            best = ""
            for draft in transducer.stream(
                part.text,
                beam_size=self.beam_size,
                length_penalty=self.length_penalty,
                split=False,
                too_long="split",
            ):
                best = draft.text
                yield text.drafted(before, draft)
            done.append((Output(best, 0.0, 0.0),))
        whole = text.put_together(done, 1).text
        yield Draft(whole, len(whole))


@dataclass(frozen=True)
class Score:
    """How probable given translations are."""

    model: Served
    beam_size: ClassVar[int] = 1

    def size(self, item: tuple[str, str]) -> int:
        """Characters to read."""
        return 1 + sum(map(len, item))

    def run(self, items: Sequence[tuple[str, str]], watch: Callable[[], None]) -> list[PairScore]:
        """The scores of pairs of source and target."""
        transducer = self.model.transducer
        for source, target in items:
            _check_length(source, transducer.source_tokenizer, transducer)
            _check_length(target, transducer.target_tokenizer, transducer)
        sources, targets = zip(*items, strict=True)
        return transducer.score(sources, targets)


@dataclass(frozen=True, eq=False)  # each by itself: nothing is gained by taking several together
class Attend:
    """Where chosen heads of chosen layers look."""

    model: Served
    kinds: tuple[Kind, ...]
    layers: tuple[int, ...]
    """Counted from 1, as heads are; none is all."""
    heads: tuple[int, ...]
    tokens: str
    limit: int
    """Weights in an answer, at most."""
    beam_size: ClassVar[int] = 1

    def size(self, item: tuple[str, str | None]) -> int:
        """Each is a batch by itself, whatever its size."""
        return 1

    def run(
        self, items: Sequence[tuple[str, str | None]], watch: Callable[[], None]
    ) -> list[dict[str, Any]]:
        """The weights between the tokens of each pair, as JSON has them."""
        return [self._seen(*pair) for pair in items]

    def _seen(self, source: str, target: str | None) -> dict[str, Any]:
        transducer = self.model.transducer
        config = transducer.model.config
        layers = _numbers("layers", self.layers, config.n_layers)
        heads = _numbers("heads", self.heads, config.n_heads)
        _check_length(source, transducer.source_tokenizer, transducer)
        _check_length(target or "", transducer.target_tokenizer, transducer)
        seen = transducer.attend(source, target)
        maps = self._chosen(seen.joined() if self.tokens == "words" else seen, layers, heads)
        size = sum(one.weights.numel() for one in maps.values())
        if size > self.limit:
            raise DataError(
                f"that is {size:,} weights, and an answer has {self.limit:,} at most; choose "
                "fewer kinds, layers or heads"
            )
        return {
            "source": seen.source,
            "target": seen.target,
            "layers": layers,
            "heads": heads,
            "attention": {kind: one.described() for kind, one in maps.items()},
        }

    def _chosen(
        self, seen: Attention, layers: Sequence[int], heads: Sequence[int]
    ) -> dict[Kind, AttentionMap]:
        at_layers, at_heads = ([number - 1 for number in chosen] for chosen in (layers, heads))
        maps = {kind: seen.of(kind) for kind in self.kinds}
        return {
            kind: replace(one, weights=one.weights[at_layers][:, at_heads])
            for kind, one in maps.items()
        }


@dataclass(frozen=True)
class ParseTrees:
    """The best trees of each sentence."""

    model: ServedParser
    beam_size: int
    n_best: int

    def size(self, item: str) -> int:
        """Characters to read."""
        return 1 + len(item)

    def run(self, items: Sequence[str], watch: Callable[[], None]) -> list[Parse]:
        """The parses of sentences."""
        try:
            return self.model.parser.parse(
                items,
                beam_size=self.beam_size,
                n_best=self.n_best,
                watch=lambda done, total: watch(),
            )
        except TooLongError as error:
            # What helps in Python is no field of a request, and its number is that in the batch.
            raise DataError(f"{error.what}; send shorter ones") from error


def _units(transducer: Transducer, sentences: Sequence[str]) -> list[list[Unit]]:
    limit = Limit(transducer.max_source_length, "")
    return take_apart(sentences, CUT, transducer.source_tokenizer, limit)


def _together(
    sentence: str, units: Sequence[Unit], outputs: Sequence[Outputs], n_best: int
) -> Outputs:
    each = [Sentence(*unit[:2], found) for unit, found in zip(units, outputs, strict=True)]
    return Translation.best(sentence, each, n_best).outputs


def _check_length(text: str, tokenizer: Tokenizer, transducer: Transducer) -> None:
    longest = transducer.max_source_length
    if (n_tokens := len(tokenizer.encode(text)) + 1) > longest:
        raise DataError(f"a sentence has {n_tokens:,} tokens, and the model reads {longest:,}")


def _numbers(what: str, chosen: tuple[int, ...], n: int) -> list[int]:
    """Those that were chosen, or all, from 1."""
    if chosen and max(chosen) > n:
        raise DataError(f"{what}: the model has {n}, and {max(chosen)} is none of them")
    return sorted({*chosen}) if chosen else list(range(1, n + 1))
