"""Documents: texts with markup, HTML or Markdown, and their translations."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from transept.api.config import Format, Request
from transept.api.texts import NOTHING, Draft, Output, Sentence, Translation
from transept.errors import TooLongError
from transept.progress import no_progress
from transept.text.html import HTML
from transept.text.inline import transfer
from transept.text.markdown import MARKDOWN
from transept.text.markup import Form, MarkupPart, split_markup
from transept.text.moses import Language
from transept.text.plain import PLAIN, is_marked
from transept.text.sentences import one_sentence, split_sentences

FORMS: dict[Format, Form] = {"text": PLAIN, "html": HTML, "markdown": MARKDOWN}


@dataclass(frozen=True)
class Document:
    """A document as a list of parts: sentences, and the space and markup between them.

    Example:
        >>> document = Document.of("<p>It <b>rains</b>.</p>", "html", "en")
        >>> document.sentences
        ['It rains.']
        >>> found = Output("Es regnet.", 0.0, 0.0, alignment=((0, 0), (1, 1)))
        >>> document.assemble([Translation("It rains.", (found,), ())], 1).text
        '<p>Es <b>regnet</b>.</p>'
    """

    source: str
    parts: tuple[MarkupPart, ...]
    form: Form

    @classmethod
    def of(
        cls, source: str, format: Format, language: str = "other", split: bool = True
    ) -> "Document":
        """Split a document.

        Args:
            source: The document.
            format: Its format.
            language: The language whose rules find the ends of sentences.
            split: Whether to split text into sentences. Block markup always separates sentences.
        """
        form = FORMS[format]
        rules: Language = language if language in ("de", "en", "fr") else "other"  # type: ignore[assignment]
        splitter = partial(split_sentences, language=rules) if split else one_sentence
        return cls(source, tuple(split_markup(source, form, splitter)), form)

    @property
    def sentences(self) -> list[str]:
        """The sentences to translate, without markup."""
        return [part.text for part in self.with_words]

    @property
    def with_words(self) -> list[MarkupPart]:
        """The parts that contain a sentence."""
        return [part for part in self.parts if part.text]

    @property
    def is_marked(self) -> bool:
        """Whether a sentence contains markup. Placing it requires word alignments."""
        return any(part.inside for part in self.parts)

    def assemble(self, found: Sequence[Translation], n_best: int) -> Translation:
        """The best combinations of the sentences' outputs, with the parts between them.

        A sentence that is not changed by its translation is written as in the source.

        Args:
            found: The translation of each sentence. If the document is marked, with alignments.
            n_best: The maximum number of outputs.
        """
        return Translation.best(self.source, self._translated(found), n_best)

    def drawn(self, found: Sequence[Translation], n: int) -> Translation:
        """`assemble` for samples: the first ones of all sentences, then the second ones."""
        return Translation.drawn(self.source, self._translated(found, n), n)

    def before_next(self, found: Sequence[Translation]) -> str:
        """The translation up to the next sentence, from those of the sentences before it."""
        at = [index for index, part in enumerate(self.parts) if part.text][len(found)]
        parts = (*self.parts[:at], MarkupPart(self.parts[at].text, ""))
        begun = Document(self.source, parts, self.form)
        nothing = Translation("", (NOTHING,), ())
        return begun.assemble([*found, nothing], 1).text

    def for_drafts(self) -> "Document":
        """The document for streaming. An unchanged sentence is written as its drafts are.

        A sentence with markup has no drafts.
        """
        parts = (
            part if part.inside else part._replace(raw=self.form.write(part.text))
            for part in self.parts
        )
        return replace(self, parts=tuple(parts))

    def drafted(self, before: str, draft: Draft) -> Draft:
        """A draft of the document, from the text before a sentence and the sentence's draft."""
        written = self.form.write(draft.text)
        # The character after the stable part may decide whether its last one is escaped.
        stable = self.form.write(draft.text[: draft.stable])
        while not written.startswith(stable):
            stable = stable[:-1]
        return Draft(before + written, len(before) + len(stable))

    def _translated(self, found: Sequence[Translation], n: int = 1) -> list[Sentence]:
        """The sentences with their outputs. A part without a sentence has n empty outputs."""
        each = iter(found)
        sentences = []
        for part in self.parts:
            one = next(each) if part.text else Translation("", (NOTHING,) * n, ())
            outputs = tuple(
                replace(output, text=self._written(part, output), alignment=None)
                for output in one.outputs
            )
            split_from = one.too_long[0] if one.too_long else None
            sentences.append(Sentence(part.text, part.space, outputs, split_from))
        return sentences

    def _written(self, part: MarkupPart, output: Output) -> str:
        """The escaped translation of a part, with the part's inline markup."""
        if output.text == part.text:
            return part.raw
        if not part.inside:
            return self.form.write(output.text)
        links = output.alignment or ()
        return transfer(part.text, part.inside, output.text, links, self.form.write)


TranslateTexts = Callable[[Sequence[str], Request], list[Translation]]
"""Translates texts without markup."""


def has_markup(text: str, request: Request) -> bool:
    """Whether a text has markup that moves with its words: in plain text, asterisks and tags."""
    if request.format != "text":
        return True
    exact = request.config.raw or request.alignments or request.prefix is not None
    return not exact and is_marked(text)


def translate_formatted(
    texts: Sequence[str], request: Request, translate: TranslateTexts
) -> list[Translation]:
    """Translate texts of any format. Those without markup need no word alignments."""
    marked = [has_markup(text, request) for text in texts]
    if not any(marked):
        return translate(texts, request)
    if all(marked):
        return _translate_documents(texts, request, translate)
    plain = [number for number, is_marked in enumerate(marked) if not is_marked]
    with _naming(plain):
        found = dict(zip(plain, translate([texts[n] for n in plain], request), strict=True))
    few = [number for number, is_marked in enumerate(marked) if is_marked]
    request = replace(request, watch=no_progress)  # the progress was that of the others
    with _naming(few):
        documents = _translate_documents([texts[n] for n in few], request, translate)
    found |= zip(few, documents, strict=True)
    return [found[number] for number in range(len(texts))]


@contextmanager
def _naming(numbers: Sequence[int]) -> Iterator[None]:
    """Let an error about a text name its number among all, counted from 1."""
    try:
        yield
    except TooLongError as error:
        number = numbers[error.number - 1] + 1
        raise TooLongError(number, error.what, error.enough, error.cure) from error


def _translate_documents(
    texts: Sequence[str], request: Request, translate: TranslateTexts
) -> list[Translation]:
    config = request.config
    documents = [
        Document.of(text, request.format, config.source_language, config.split) for text in texts
    ]
    owners = [number for number, one in enumerate(documents) for _ in one.sentences]
    sentences = [sentence for one in documents for sentence in one.sentences]
    inner = replace(
        request,
        config=replace(config, split=False),
        alignments=any(one.is_marked for one in documents),
    )
    with _naming(owners):
        found = iter(translate(sentences, inner))
    join = Document.assemble if request.sampling is None else Document.drawn
    return [join(one, [next(found) for _ in one.sentences], config.n_best) for one in documents]
