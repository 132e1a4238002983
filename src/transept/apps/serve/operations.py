"""What a model can do for a request: translate, score, show attention, parse.

Items of equal operations are decoded in one batch.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from transept.api.attention import Attention, AttentionMap, Kind
from transept.api.parses import Parse
from transept.api.texts import Draft, Output, PairScore, Sentence, TooLongError, Translation, Unit
from transept.api.transducer import Transducer
from transept.apps.serve.models import Served, ServedParser
from transept.apps.serve.texts import Outputs, Text
from transept.errors import DataError
from transept.text.tokenizer import Tokenizer


class EncodedUnit(NamedTuple):
    """A unit, and the vocabulary of its ids: a model may be reloaded with another one."""

    unit: Unit
    tokenizer: Tokenizer

    def of(self, transducer: Transducer) -> Unit:
        """The unit with ids that this model reads."""
        tokenizer = transducer.source_tokenizer
        if tokenizer is self.tokenizer:
            return self.unit
        return self.unit._replace(ids=tokenizer.encode(self.unit.text))


@dataclass(frozen=True)
class Translate:
    """Translate sentences: give as many outputs of each as the beam is wide."""

    model: Served
    beam_size: int
    length_penalty: float
    alignments: bool = False
    """Whether to find out which words belong together, so that markup can follow its words."""

    def units(self, sentences: Sequence[str]) -> list[list[EncodedUnit]]:
        """The units of each sentence: only one that is too long for the model has several."""
        return _units(self.model.transducer, sentences)

    def size(self, item: EncodedUnit) -> int:
        """The tokens of the source; an output has about as many."""
        return len(item.unit.ids) + 1

    def run(self, items: Sequence[EncodedUnit], watch: Callable[[], None]) -> list[Outputs]:
        """The outputs of each unit."""
        return self._outputs(self.model.transducer, items, watch)

    def run_feed(
        self, feed: Callable[[int], Sequence[EncodedUnit]]
    ) -> Iterator[list[tuple[int, Outputs]]]:
        """The outputs of units that come while others are being translated."""
        transducer = self.model.transducer

        def units(n: int) -> list[Unit]:
            # Once the model was loaded again, later sentences are for the new one: take no more.
            is_old = self.model.transducer is not transducer
            return [item.of(transducer) for item in feed(0 if is_old else n)]

        return transducer.translate_feed(
            units,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=self.beam_size,
            alignments=self.alignments,
        )

    def joined(
        self,
        sentences: Sequence[str],
        units: Sequence[Sequence[EncodedUnit]],
        outputs: Iterable[Outputs],
    ) -> list[Outputs]:
        """The outputs of sentences, from the outputs of all their units in order."""
        each = iter(outputs)
        return [
            _together(sentence, parts, [next(each) for _ in parts], self.beam_size)
            for sentence, parts in zip(sentences, units, strict=True)
        ]

    def _outputs(
        self, transducer: Transducer, items: Sequence[EncodedUnit], watch: Callable[[], None]
    ) -> list[Outputs]:
        return transducer.translate_units(
            [item.of(transducer) for item in items],
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=self.beam_size,
            alignments=self.alignments,
            watch=lambda done, total: watch(),
        )

    def drafts(self, text: Text) -> Generator[Draft, None, None]:
        """Drafts of the translation of a text, one after each token."""
        assert self.alignments or not text.is_marked
        transducer = self.model.transducer  # the same to the end, even if the model is reloaded
        done: list[Outputs] = []
        for part in text.with_words:
            before = text.before_next(done)
            if part.inside:
                # Where the markup of a sentence goes is known only when all of it is translated. A
                # draft after each unit lets other streams have their turns.
                (units,) = _units(transducer, [part.text])
                outputs = []
                for unit in units:
                    outputs += self._outputs(transducer, [unit], lambda: None)
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
class ScoreOperation:
    """Compute how probable given translations are."""

    model: Served
    beam_size: ClassVar[int] = 1

    def size(self, item: tuple[str, str]) -> int:
        """The characters of source and target."""
        return 1 + sum(map(len, item))

    def run(self, items: Sequence[tuple[str, str]], watch: Callable[[], None]) -> list[PairScore]:
        """The score of each pair of source and target."""
        transducer = self.model.transducer
        for source, target in items:
            _check_length(source, transducer.source_tokenizer, transducer)
            _check_length(target, transducer.target_tokenizer, transducer)
        sources, targets = zip(*items, strict=True)
        return transducer.score(sources, targets)


# No two are equal, so each is a batch by itself: a batch of several would gain nothing.
@dataclass(frozen=True, eq=False)
class AttendOperation:
    """Show the attention weights of chosen heads of chosen layers."""

    model: Served
    kinds: tuple[Kind, ...]
    layers: tuple[int, ...]
    """Layers and heads are counted from 1. An empty tuple means all."""
    heads: tuple[int, ...]
    tokens: str
    limit: int
    """The most weights that an answer may have."""
    beam_size: ClassVar[int] = 1

    def size(self, item: tuple[str, str | None]) -> int:
        """The same for all: each is a batch by itself, so its size is not used."""
        return 1

    def run(
        self, items: Sequence[tuple[str, str | None]], watch: Callable[[], None]
    ) -> list[dict[str, Any]]:
        """The weights between the tokens of each pair, in the form of the JSON answer."""
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
    """Parse sentences: give the best trees of each."""

    model: ServedParser
    beam_size: int
    n_best: int

    def size(self, item: str) -> int:
        """The characters of the sentence."""
        return 1 + len(item)

    def run(self, items: Sequence[str], watch: Callable[[], None]) -> list[Parse]:
        """The parse of each sentence."""
        try:
            return self.model.parser.parse(
                items,
                beam_size=self.beam_size,
                n_best=self.n_best,
                watch=lambda done, total: watch(),
            )
        except TooLongError as error:
            # The whole message would name an option of Python, and the number of the sentence in
            # the batch, which may hold sentences of other clients.
            raise DataError(f"{error.what}; send shorter ones") from error


def _units(transducer: Transducer, sentences: Sequence[str]) -> list[list[EncodedUnit]]:
    """Only sentences that are too long are cut: a request's text is in sentences already."""
    taken = transducer.units(sentences, split=False, too_long="split")
    return [[EncodedUnit(unit, transducer.source_tokenizer) for unit in each] for each in taken]


def _together(
    sentence: str, units: Sequence[EncodedUnit], outputs: Sequence[Outputs], n_best: int
) -> Outputs:
    """The outputs of a sentence, put together from those of its units."""
    each = [Sentence(*item.unit[:2], found) for item, found in zip(units, outputs, strict=True)]
    return Translation.best(sentence, each, n_best).outputs


def _check_length(text: str, tokenizer: Tokenizer, transducer: Transducer) -> None:
    longest = transducer.max_source_length
    if (n_tokens := len(tokenizer.encode(text)) + 1) > longest:
        raise DataError(f"a sentence has {n_tokens:,} tokens, and the model reads {longest:,}")


def _numbers(what: str, chosen: tuple[int, ...], n: int) -> list[int]:
    """The chosen numbers, or all from 1 to n if none was chosen."""
    if chosen and max(chosen) > n:
        raise DataError(f"{what}: the model has {n}, and {max(chosen)} is none of them")
    return sorted({*chosen}) if chosen else list(range(1, n + 1))
