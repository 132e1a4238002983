"""Taking a text, plain or HTML, apart into sentences, and putting its translation together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from transept.api.results import NOTHING, Draft, Output, Sentence, Translation
from transept.serving.inline import escape, has_letters, transfer
from transept.serving.markup import Part, as_read, split_html
from transept.text.moses import Language
from transept.text.sentences import split_sentences

Outputs = tuple[Output, ...]


@dataclass(frozen=True)
class Text:
    """A text as a list of parts: sentences, and what stands between them."""

    source: str
    parts: tuple[Part, ...]
    is_html: bool

    @classmethod
    def of(cls, source: str, form: str, language: str) -> "Text":
        """Take a text apart by the rules of its language."""
        rules: Language = language if language in ("de", "en", "fr") else "other"  # type: ignore[assignment]
        if form == "html":
            parts = [_without_words(part, escape) for part in split_html(source, rules)]
            return cls(source, tuple(parts), is_html=True)
        pieces = split_sentences(source, rules)
        parts = [_without_words(Part(*piece), str) for piece in pieces]
        read = [part._replace(text=as_read(part.text)) for part in parts]
        return cls(source, tuple(read), is_html=False)

    @property
    def sentences(self) -> list[str]:
        """The sentences to translate."""
        return [part.text for part in self.with_words]

    @property
    def with_words(self) -> list[Part]:
        """The parts that are sentences."""
        return [part for part in self.parts if part.text]

    @property
    def is_marked(self) -> bool:
        """Whether there is markup inside a sentence. Then alignments are needed to place it."""
        return any(part.inside for part in self.parts)

    def put_together(self, outputs: Sequence[Outputs], n_best: int) -> Translation:
        """The best combinations of the sentences' outputs, with what stands between them."""
        each = iter(outputs)
        sentences = [
            Sentence(part.text, part.space, self._written(part, next(each)))
            if part.text
            else Sentence("", part.space, (NOTHING,))
            for part in self.parts
        ]
        return Translation.best(self.source, sentences, n_best)

    def before_next(self, outputs: Sequence[Outputs]) -> str:
        """The translation up to the next sentence, from the outputs of the sentences before it."""
        at = [index for index, part in enumerate(self.parts) if part.text][len(outputs)]
        parts = (*self.parts[:at], Part(self.parts[at].text, ""))
        begun = Text(self.source, parts, self.is_html)
        return begun.put_together([*outputs, (NOTHING,)], 1).text

    def drafted(self, before: str, draft: Draft) -> Draft:
        """A draft of the whole text, from what stands before a sentence and a draft of that."""
        stable = draft.text[: draft.stable]
        return Draft(before + self._text(draft.text), len(before) + len(self._text(stable)))

    def _written(self, part: Part, outputs: Outputs) -> Outputs:
        return tuple(replace(one, text=self._html(part, one), alignment=None) for one in outputs)

    def _html(self, part: Part, output: Output) -> str:
        if not part.inside:
            return self._text(output.text)
        return transfer(part.text, part.inside, output.text, output.alignment or ())

    def _text(self, text: str) -> str:
        return escape(text) if self.is_html else text


def _without_words(part: Part, written: Callable[[str], str]) -> Part:
    """The part; if it has no letter and no digit, it becomes a part with nothing to translate.

    A model would make nonsense of a row of dots.
    """
    if not part.text or has_letters(part.text):
        return part
    same = tuple((i, i) for i in range(len(part.text.split())))
    text = transfer(part.text, part.inside, part.text, same) if part.inside else written(part.text)
    return Part("", text + part.space)
