"""A text, plain or HTML, taken apart into sentences and put together again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transept.api.results import NOTHING, Draft, Output, Sentence, Translation
from transept.serving.markup import escape, split_html
from transept.text.moses import Language
from transept.text.sentences import Piece, split_sentences

Outputs = tuple[Output, ...]


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

    def before_next(self, outputs: Sequence[Outputs]) -> str:
        """What stands before the next sentence, if these are the outputs of those before it."""
        at = [index for index, piece in enumerate(self.pieces) if piece.text][len(outputs)]
        pieces = (*self.pieces[:at], Piece(self.pieces[at].text, ""))
        begun = Text(self.source, pieces, self.is_html)
        return begun.put_together([*outputs, (NOTHING,)], 1).text

    def drafted(self, before: str, draft: Draft) -> Draft:
        """The text up to where a sentence is being written."""
        stable = draft.text[: draft.stable]
        return Draft(before + self._text(draft.text), len(before) + len(self._text(stable)))

    def _written(self, outputs: Outputs) -> Outputs:
        return tuple(replace(one, text=self._text(one.text)) for one in outputs)

    def _text(self, text: str) -> str:
        return escape(text) if self.is_html else text
