"""Taking a text, plain or HTML, apart into sentences, and putting its translation together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transept.api.texts import NOTHING, Draft, Output, Sentence, Translation
from transept.apps.serve.inline import transfer
from transept.apps.serve.markup import HTML, PLAIN, Form, MarkupPart, split_html, split_plain
from transept.text.moses import Language

Outputs = tuple[Output, ...]


@dataclass(frozen=True)
class Text:
    """A text as a list of parts: sentences, and what stands between them."""

    source: str
    parts: tuple[MarkupPart, ...]
    form: Form

    @classmethod
    def of(cls, source: str, form: str, language: str) -> "Text":
        """Take a text apart by the rules of its language."""
        rules: Language = language if language in ("de", "en", "fr") else "other"  # type: ignore[assignment]
        how, split = (HTML, split_html) if form == "html" else (PLAIN, split_plain)
        return cls(source, tuple(split(source, rules)), how)

    @property
    def sentences(self) -> list[str]:
        """The sentences to translate."""
        return [part.text for part in self.with_words]

    @property
    def with_words(self) -> list[MarkupPart]:
        """The parts that are sentences."""
        return [part for part in self.parts if part.text]

    @property
    def is_marked(self) -> bool:
        """Whether markup or emoji are inside a sentence. Alignments are needed to place them."""
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
        parts = (*self.parts[:at], MarkupPart(self.parts[at].text, ""))
        begun = Text(self.source, parts, self.form)
        return begun.put_together([*outputs, (NOTHING,)], 1).text

    def drafted(self, before: str, draft: Draft) -> Draft:
        """A draft of the whole text, from what stands before a sentence and a draft of that."""
        stable = draft.text[: draft.stable]
        write = self.form.write
        return Draft(before + write(draft.text), len(before) + len(write(stable)))

    def _written(self, part: MarkupPart, outputs: Outputs) -> Outputs:
        return tuple(replace(one, text=self._marked(part, one), alignment=None) for one in outputs)

    def _marked(self, part: MarkupPart, output: Output) -> str:
        """The translation of a part as it is written, with what was inside the part."""
        links = output.alignment or ()
        return transfer(part.text, part.inside, output.text, links, self.form.write)
