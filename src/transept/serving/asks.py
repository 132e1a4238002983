"""What a model can be asked for; equal ones are answered in one batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transept.api.results import NOTHING, Output, PairScore, Sentence, Translation
from transept.errors import DataError
from transept.serving.markup import escape, split_html
from transept.serving.models import Served
from transept.text.moses import Language
from transept.text.sentences import Piece, split_sentences
from transept.text.tokenizer import Tokenizer

Outputs = tuple[Output, ...]


@dataclass(frozen=True)
class Translate:
    """The best outputs of each sentence, as many as the beam is wide."""

    model: Served
    beam_size: int
    length_penalty: float

    def run(self, items: Sequence[str], watch: Callable[[], None]) -> list[Outputs]:
        """Outputs of sentences. One that is too long for the model is cut."""
        translations = self.model.transducer.translate(
            items,
            beam_size=self.beam_size,
            length_penalty=self.length_penalty,
            n_best=self.beam_size,
            split=False,
            too_long="split",
            watch=lambda done, total: watch(),
        )
        return [translation.outputs for translation in translations]


@dataclass(frozen=True)
class Score:
    """How probable given translations are."""

    model: Served

    def run(self, items: Sequence[tuple[str, str]], watch: Callable[[], None]) -> list[PairScore]:
        """The scores of pairs of source and target."""
        transducer = self.model.transducer
        for source, target in items:
            self._check(source, transducer.source_tokenizer)
            self._check(target, transducer.target_tokenizer)
        sources, targets = zip(*items, strict=True)
        return transducer.score(sources, targets)

    def _check(self, text: str, tokenizer: Tokenizer) -> None:
        longest = self.model.transducer.max_source_length
        if (n_tokens := len(tokenizer.encode(text)) + 1) > longest:
            raise DataError(f"a sentence has {n_tokens:,} tokens, and the model reads {longest:,}")


@dataclass(frozen=True)
class Text:
    """A text taken apart into sentences and what stands between them."""

    source: str
    pieces: tuple[Piece, ...]
    is_html: bool

    @classmethod
    def of(cls, source: str, form: str, language: str) -> "Text":
        """Take a text apart by the rules of its language."""
        rules: Language = language if language in ("de", "en", "fr") else "other"  # type: ignore[assignment]
        is_html = form == "html"
        split = split_html if is_html else split_sentences
        return cls(source, tuple(split(source, rules)), is_html)

    @property
    def sentences(self) -> list[str]:
        """What is to be translated."""
        return [piece.text for piece in self.pieces if piece.text]

    def put_together(self, outputs: Sequence[Outputs], n_best: int) -> Translation:
        """The best combinations of the sentences' outputs, with what stood between them."""
        each = iter(outputs)
        sentences = [
            Sentence(piece.text, piece.space, self._written(next(each)))
            if piece.text
            else Sentence("", piece.space, (NOTHING,))
            for piece in self.pieces
        ]
        return Translation.best(self.source, sentences, n_best)

    def _written(self, outputs: Outputs) -> Outputs:
        if not self.is_html:
            return outputs
        return tuple(
            Output(escape(one.text), one.score, one.log_probability, one.finished)
            for one in outputs
        )
