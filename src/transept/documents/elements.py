"""The paragraphs of an XML document as HTML, and the document with translated paragraphs.

expat finds the elements and checks that the document is well-formed. Everything outside of
translated paragraphs is copied byte for byte. A `Dialect` describes the elements of a format.
"""

import codecs
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

from transept.documents.tags import Name, escape, marks, tag
from transept.errors import DataError
from transept.text.sentences import has_letters

DEEPEST = 200
"""The maximum depth of nested elements. Office programs write about 30."""
MOST_ELEMENTS = 500_000
"""The maximum number of elements. A page of Word has about 500."""
_ENCODING = re.compile(r"""(<\?xml[^>]*?encoding=["'])([\w.-]+)""")


@dataclass(slots=True)
class XmlNode:
    """An element. Comments and the like are nodes without a name."""

    name: str
    """With the usual prefix of its namespace: `w:p`."""
    open: str
    """The start tag as in the document."""
    close: str = ""
    children: "list[str | XmlNode]" = field(default_factory=list)
    paragraph: "Paragraph | None" = None

    def child(self, name: str) -> "XmlNode | None":
        """The first child with this name."""
        return next((one for one in self.nodes if one.name == name), None)

    @property
    def nodes(self) -> "list[XmlNode]":
        """The children that are elements."""
        return [one for one in self.children if isinstance(one, XmlNode)]

    @property
    def text(self) -> str:
        """The text of the children."""
        return "".join(one for one in self.children if isinstance(one, str))


Part = str | XmlNode
Parts = Sequence[Part]


class Words(NamedTuple):
    """Text of one style."""

    text: str
    style: str | None = None
    """The formatting as in the document. None: the text has no element for its style."""


class Alone(NamedTuple):
    """Content that is not translated, such as an image. It may contain paragraphs."""

    parts: Parts
    is_break: bool = False
    """Whether it separates sentences."""


class Around(NamedTuple):
    """Markup around words, such as a link."""

    open: Parts
    items: "Sequence[Item]"
    close: Parts


Item = Words | Alone | Around


class Dialect(NamedTuple):
    """The elements of a format. Names have the prefixes of `namespaces`."""

    namespaces: Mapping[str, str]
    """The usual prefix of each namespace, with a colon."""
    paragraphs: Container[str]
    """The elements that are translated. A paragraph may contain others."""
    copied: Container[str]
    """The elements whose paragraphs are not translated, such as deleted text."""
    items: Callable[[XmlNode], list[Item]]
    """The content of a paragraph."""
    write: Callable[[XmlNode, str, str | None], str]
    """Writes text of a style in a paragraph. The text is escaped."""
    prepare: Callable[[XmlNode], XmlNode | None] = lambda node: node
    """The node to translate in a paragraph. None: it is copied."""


# --- paragraphs ------------------------------------------------------------------------------


class Paragraph:
    """A paragraph as HTML. Its tags stand for other styles than the usual one, and for content."""

    def __init__(self, node: XmlNode, dialect: Dialect) -> None:
        self._node, self._dialect = node, dialect
        self._tags: list[tuple[str | None, Item]] = []
        """Per tag: the style of text in it, and what it stands for."""
        items = dialect.items(node)
        first, last = 0, len(items)
        while first < last and isinstance(items[first], Alone):
            first += 1
        while last > first and isinstance(items[last - 1], Alone):
            last -= 1
        self._before, self._after = items[:first], items[last:]
        self.html, self._style = self._composed(items[first:last])
        self.number: int | None = None
        """The number of the text. None: it is not translated."""

    def _composed(self, items: Sequence[Item]) -> tuple[str, str | None]:
        """The HTML of some items, and their usual style."""
        sizes = Counter[str | None]()
        for item in items:
            if isinstance(item, Words):
                sizes[item.style] += len(item.text)
        usual = max(sizes, key=lambda style: sizes[style]) if sizes else None
        html, waiting, style = list[str](), list[str](), usual
        for item in items:
            if isinstance(item, Alone):
                # It is inside of a style only if both of its neighbours are.
                waiting.append(self._tag(item, style))
                continue
            wanted = item.style if isinstance(item, Words) else usual
            if wanted == style:
                html += waiting
            else:
                html += [*([] if style == usual else ["</span>"]), *waiting]
                html += [] if wanted == usual else [self._tag(Words("", wanted), wanted)]
            waiting, style = [], wanted
            html.append(escape(item.text) if isinstance(item, Words) else self._element(item))
        html += [*([] if style == usual else ["</span>"]), *waiting]
        return "".join(html), usual

    def _element(self, item: Around) -> str:
        number = len(self._tags)
        self._tags.append((None, item))
        html, style = self._composed(item.items)
        self._tags[number] = style, item
        return f"{tag('span', number)}{html}</span>"

    def _tag(self, item: Item, style: str | None) -> str:
        self._tags.append((style, item))
        name: Name = "span" if not isinstance(item, Alone) else "br" if item.is_break else "img"
        return tag(name, len(self._tags) - 1)

    @property
    def text(self) -> str:
        """The text without tags."""
        return "".join(mark.text for mark in marks(self.html))

    def translated(self, html: str, texts: Sequence[str]) -> str:
        """The content of the paragraph with its translation."""
        styles, closing = [self._style], list[str]()
        out = [self._written(self._before, texts)]
        for mark in marks(html):
            if mark.opens is not None:
                style, item = self._tags[mark.opens]
                if isinstance(item, Alone):
                    out.append(written(item.parts, texts))
                    continue
                open, close = (item.open, item.close) if isinstance(item, Around) else ((), ())
                out.append(written(open, texts))
                closing.append(written(close, texts))
                styles.append(style)
            elif mark.closes:
                styles.pop()
                out.append(closing.pop())
            else:
                out.append(self._dialect.write(self._node, escape(mark.text), styles[-1]))
        return "".join([*out, self._written(self._after, texts)])

    def _written(self, items: Iterable[Item], texts: Sequence[str]) -> str:
        return "".join(written(item.parts, texts) for item in items if isinstance(item, Alone))


def written(parts: Parts, texts: Sequence[str] = ()) -> str:
    """Parts as XML, with the translations of their paragraphs.

    A paragraph that its translation does not change is written as in the document.
    """
    out = []
    for part in parts:
        if isinstance(part, str):
            out.append(escape(part))
            continue
        paragraph, inner = part.paragraph, None
        if paragraph is not None and paragraph.number is not None and texts:
            html = texts[paragraph.number]
            inner = None if html == paragraph.html else paragraph.translated(html, texts)
        out += part.open, written(part.children, texts) if inner is None else inner, part.close
    return "".join(out)


# --- documents -------------------------------------------------------------------------------


class XmlDocument:
    """An XML document, and the texts of its paragraphs."""

    def __init__(
        self, data: bytes, name: str, dialect: Dialect, kept: Container[str] = frozenset()
    ) -> None:
        """Find the paragraphs of a document.

        Args:
            data: The document.
            name: Its name in messages.
            dialect: Its format.
            kept: Texts that are not translated.
        """
        self._data, self._name, self._dialect, self._kept = (
            _as_utf8(data, name),
            name,
            dialect,
            kept,
        )
        self.texts: list[str] = []
        """The paragraphs as HTML."""
        self._parts: list[bytes | XmlNode] = []
        self._stack: list[XmlNode] = []
        """The nodes that are not closed yet, from the outermost paragraph."""
        self._copied, self._depth, self._n_elements = 0, 0, 0
        self._markup: dict[str, str] = {}
        """One copy of each tag, because most occur many times."""
        self._copied_to = 0
        """The end of the part of the document that is in the list of parts."""
        self._token: tuple[int, XmlNode, str] | None = None
        """The start of the last token in a paragraph, its node, and the field for its markup."""
        self._parse()

    def translated(self, texts: Sequence[str]) -> bytes:
        """The document with the translation of each text."""
        return b"".join(
            part if isinstance(part, bytes) else written([part], texts).encode()
            for part in self._parts
        )

    def _parse(self) -> None:
        parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        parser.StartElementHandler = lambda name, _: self._start(name, parser.CurrentByteIndex)
        parser.EndElementHandler = lambda name: self._end(parser.CurrentByteIndex)
        parser.CharacterDataHandler = lambda text: self._text(text, parser.CurrentByteIndex)
        parser.DefaultHandler = lambda _: self._other(parser.CurrentByteIndex)
        parser.EntityDeclHandler = self._reject_entity
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError as error:
            raise self._damaged(str(error)) from error
        self._end_token(len(self._data))
        self._parts.append(self._data[self._copied_to :])

    def _start(self, full_name: str, at: int) -> None:
        self._end_token(at)
        self._depth += 1
        self._n_elements += 1
        if self._n_elements > MOST_ELEMENTS:
            raise DataError(
                f"{self._name}: has more than {MOST_ELEMENTS:,} elements; split the document into "
                "smaller ones"
            )
        if self._depth > DEEPEST:
            raise self._damaged(f"its elements are nested more than {DEEPEST} deep")
        space, _, local = full_name.rpartition(" ")
        name = self._dialect.namespaces.get(space, "?") + local
        if self._copied or name in self._dialect.copied:
            self._copied += 1
        if not self._stack:
            if self._copied or name not in self._dialect.paragraphs:
                return
            self._parts.append(self._data[self._copied_to : at])
        node = XmlNode(name, "")
        self._stack.append(node)
        self._token = at, node, "open"

    def _end(self, at: int) -> None:
        self._end_token(at)
        self._depth -= 1
        if self._stack:
            node = self._stack.pop()
            self._token = at, node, "close"
            if not self._copied and node.name in self._dialect.paragraphs:
                self._end_paragraph(node)
            if self._stack:
                self._stack[-1].children.append(node)
            else:
                self._parts.append(node)
        self._copied = max(0, self._copied - 1)

    def _end_paragraph(self, node: XmlNode) -> None:
        wanted = self._dialect.prepare(node)
        if wanted is None:
            return
        paragraph = Paragraph(wanted, self._dialect)
        if has_letters(paragraph.text) and paragraph.text.strip() not in self._kept:
            wanted.paragraph, paragraph.number = paragraph, len(self.texts)
            self.texts.append(paragraph.html)

    def _text(self, text: str, at: int) -> None:
        self._end_token(at)
        if self._stack:
            self._stack[-1].children.append(text)

    def _other(self, at: int) -> None:
        """Handle a comment, a processing instruction, or the limits of a CDATA section."""
        self._end_token(at)
        if self._stack:
            self._token = at, XmlNode("", ""), "open"

    def _end_token(self, at: int) -> None:
        """The last token ends here: store its markup."""
        if self._token is None:
            return
        start, node, which = self._token
        markup = self._data[start:at].decode()
        self._token = None
        setattr(node, which, self._markup.setdefault(markup, markup))
        if not node.name and not markup.startswith(("<![CDATA[", "]]>")):
            self._stack[-1].children.append(node)
        if which == "close" and not self._stack:
            self._copied_to = at

    def _damaged(self, why: str) -> DataError:
        return DataError(
            f"{self._name}: is damaged ({why}); open it in the program that wrote it and save it "
            "again"
        )

    def _reject_entity(self, *declaration: object) -> None:
        raise DataError(
            f"{self._name}: declares an entity, which could read other files or exhaust the "
            "memory; replace the entities by their text"
        )


def _as_utf8(data: bytes, name: str) -> bytes:
    """The document in UTF-8. Its declaration is changed if it had another encoding."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    declared = _ENCODING.match(data[:200].decode("latin-1"))
    encoding = "utf-16" if wide else declared[2].lower() if declared else "utf-8"
    if encoding in ("utf-8", "us-ascii", "ascii"):
        return data
    try:
        return _ENCODING.sub(r"\1UTF-8", data.decode(encoding), count=1).encode()
    except (UnicodeError, LookupError) as error:
        raise DataError(f"{name}: is not {encoding}, as it declares; save it in UTF-8") from error
