"""A text, plain or HTML, taken apart into sentences and put together again."""

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
    """A text taken apart into sentences and what stands between them."""

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
        """What is to be translated."""
        return [part.text for part in self.with_words]

    @property
    def with_words(self) -> list[Part]:
        """The parts that are sentences."""
        return [part for part in self.parts if part.text]

    @property
    def is_marked(self) -> bool:
        """Whether markup goes with words, so that it must be known which belong together."""
        return any(part.inside for part in self.parts)

    def put_together(self, outputs: Sequence[Outputs], n_best: int) -> Translation:
        """The best combinations of the sentences' outputs, with what stood between them."""
        each = iter(outputs)
        sentences = [
            Sentence(part.text, part.space, self._written(part, next(each)))
            if part.text
            else Sentence("", part.space, (NOTHING,))
            for part in self.parts
        ]
        return Translation.best(self.source, sentences, n_best)

    def before_next(self, outputs: Sequence[Outputs]) -> str:
        """What stands before the next sentence, if these are the outputs of those before it."""
        at = [index for index, part in enumerate(self.parts) if part.text][len(outputs)]
        parts = (*self.parts[:at], Part(self.parts[at].text, ""))
        begun = Text(self.source, parts, self.is_html)
        return begun.put_together([*outputs, (NOTHING,)], 1).text

    def drafted(self, before: str, draft: Draft) -> Draft:
        """The text up to where a sentence is being written."""
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
    """The part as it is; or, if there is no letter and no digit in it, nothing to translate.

    What a model makes of a row of dots is not what anybody wants.
    """
    if not part.text or has_letters(part.text):
        return part
    same = tuple((i, i) for i in range(len(part.text.split())))
    text = transfer(part.text, part.inside, part.text, same) if part.inside else written(part.text)
    return Part("", text + part.space)
