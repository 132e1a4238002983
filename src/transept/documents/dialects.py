"""The dialects of XML: Office Open XML, OpenDocument, the contents of EPUB, and XLIFF."""

import re
from collections.abc import Iterable, Sequence

from transept.documents.elements import Alone, Around, Dialect, Item, Part, Words, XmlNode, written
from transept.documents.tags import escape

# --- Office Open XML: Word, PowerPoint and Excel ---------------------------------------------

_OFFICE = "http://schemas.openxmlformats.org/"
_STRICT = "http://purl.oclc.org/ooxml/"
_AROUND_RUNS = frozenset({"w:hyperlink", "w:ins", "w:moveTo", "w:smartTag"})
_BREAKS = frozenset({"w:br", "w:cr", "w:tab", "w:ptab", "a:br"})
_DROPPED = frozenset({"w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"})
"""Where words of the source were misspelled, and where lines and pages ended."""
MOST_FIELDS = 5
"""The maximum depth of fields in fields."""
_NOT_STYLE = re.compile(
    r"<w:(?:lang|noProof)\b[^>]*/>|(?<=\s)(?:lang|altLang|dirty|err|smtClean)=\"[^\"]*\"\s*"
)
"""The language and the spelling of a run. They often divide a sentence into many runs."""
_PREFIX = re.compile(r"<([\w.-]+:)?")


def _office_items(paragraph: XmlNode) -> list[Item]:
    items: list[Item] = []
    for node in paragraph.nodes:
        kind = node.name.partition(":")[2]
        if kind == "r":
            items += _run_items(node)
        elif kind == "t":
            items.append(Words(node.text))
        elif node.name in _AROUND_RUNS:
            opened, closed = XmlNode("", node.open), XmlNode("", node.close)
            items.append(Around([opened], _office_items(node), [closed]))
        elif node.name == "w:sdt" and (content := node.child("w:sdtContent")) is not None:
            items.append(_content_control(node, content))
        elif node.name not in _DROPPED:
            items.append(Alone([node], node.name in _BREAKS))
    return _with_fields(items)


def _run_items(run: XmlNode) -> list[Item]:
    """The content of a run. Each part that is not text gets its own run."""
    items: list[Item] = []
    properties = next((one for one in run.nodes if one.name.endswith(":rPr")), None)
    style = "" if properties is None else _NOT_STYLE.sub("", written([properties]))
    for node in run.nodes:
        if node is properties or node.name in _DROPPED:
            continue
        if node.name.endswith(":t"):
            items.append(Words(node.text, style))
        elif node.name == "w:noBreakHyphen":
            items.append(Words("\N{NON-BREAKING HYPHEN}", style))
        else:
            own = [node] if properties is None else [properties, node]
            whole = XmlNode(run.name, run.open, run.close, [*own])
            items.append(Alone([whole], node.name in _BREAKS))
    return items


def _content_control(node: XmlNode, content: XmlNode) -> Around:
    at = node.children.index(content)
    opened: list[Part] = [XmlNode("", node.open), *node.children[:at], XmlNode("", content.open)]
    closed = [XmlNode("", content.close), *node.children[at + 1 :], XmlNode("", node.close)]
    return Around(opened, _office_items(content), closed)


def _with_fields(items: Sequence[Item]) -> list[Item]:
    """Join the parts of each field of Word.

    A field is several runs: its code, and its last result. The result of a link is text. The result
    of another field, such as a page number, stays as it is.
    """
    levels: list[list[Item]] = [[]]
    for item in items:
        mark = _field_mark(item)
        if mark == "begin" and len(levels) <= MOST_FIELDS:
            levels.append([item])
        elif mark == "end" and len(levels) > 1:
            field = _field([*levels.pop(), item])
            levels[-1].append(field)
        else:
            levels[-1].append(item)
    # A mark whose field continues in another paragraph must stay where it is.
    return [
        item._replace(is_break=True) if isinstance(item, Alone) and _field_mark(item) else item
        for level in levels
        for item in level
    ]


def _field_mark(item: Item) -> str:
    """begin, separate or end; empty if the item does not delimit a field."""
    if isinstance(item, Alone) and isinstance(run := item.parts[0], XmlNode):
        mark = run.child("w:fldChar") if len(item.parts) == 1 else None
        found = mark and re.search(r'fldCharType="(\w+)"', mark.open)
        return found[1] if found else ""
    return ""


def _field(items: Sequence[Item]) -> Item:
    split = next((at for at, item in enumerate(items) if _field_mark(item) == "separate"), None)
    code = "".join(
        part.text
        for item in items[:split]
        if isinstance(item, Alone)
        for run in item.parts
        if isinstance(run, XmlNode)
        for part in run.nodes
        if part.name == "w:instrText"
    )
    if split is None or not code.strip().upper().startswith("HYPERLINK"):
        return Alone(_parts(items))
    return Around(
        _parts(items[: split + 1]), _with_fields(items[split + 1 : -1]), _parts(items[-1:])
    )


def _parts(items: Iterable[Item]) -> list[Part]:
    """Items of Word as in the document."""
    parts: list[Part] = []
    for item in items:
        if isinstance(item, Words):
            parts.append(XmlNode("w:r", _run("w:", escape(item.text), item.style or "")))
        elif isinstance(item, Alone):
            parts += item.parts
        else:
            parts += [*item.open, *_parts(item.items), *item.close]
    return parts


def _run(prefix: str, text: str, style: str) -> str:
    space = "" if prefix == "a:" else ' xml:space="preserve"'
    return f"<{prefix}r>{style}<{prefix}t{space}>{text}</{prefix}t></{prefix}r>"


def _write_run(paragraph: XmlNode, text: str, style: str | None) -> str:
    prefix = _prefix(paragraph)
    if style is None and paragraph.name in _STRINGS:
        return f'<{prefix}t xml:space="preserve">{text}</{prefix}t>'
    return _run(prefix, text, style or "")


def _prefix(node: XmlNode) -> str:
    """The prefix of a node's name as in the document."""
    found = _PREFIX.match(node.open)
    return (found and found[1]) or ""


_STRINGS = frozenset({"x:si", "x:is"})
OFFICE = Dialect(
    namespaces={
        f"{start}{name}{end}": prefix
        for start, end in ((_OFFICE, "/2006/main"), (_STRICT, "/main"))
        for name, prefix in {
            "wordprocessingml": "w:",
            "drawingml": "a:",
            "spreadsheetml": "x:",
        }.items()
    },
    paragraphs=frozenset({"w:p", "a:p"}) | _STRINGS,
    copied=frozenset({"w:del", "w:moveFrom", "x:rPh"}),
    items=_office_items,
    write=_write_run,
)


# --- OpenDocument, and the table of contents of EPUB -----------------------------------------


def _write_text(paragraph: XmlNode, text: str, style: str | None) -> str:
    return text


def _mixed_items(paragraph: XmlNode, around: frozenset[str], breaks: frozenset[str]) -> list[Item]:
    """The content of a paragraph that mixes text and elements."""
    items: list[Item] = []
    for part in paragraph.children:
        if isinstance(part, str):
            items.append(Words(part))
        elif part.name in around and not _is_protected(part):
            opened, closed = XmlNode("", part.open), XmlNode("", part.close)
            items.append(Around([opened], _mixed_items(part, around, breaks), [closed]))
        else:
            items.append(Alone([part], part.name in breaks))
    return items


_SPANS = frozenset({"text:span", "text:a", "text:meta"})
_LINE_BREAKS = frozenset({"text:line-break", "text:tab"})
OPEN_DOCUMENT = Dialect(
    namespaces={
        "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text:",
        "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office:",
    },
    paragraphs=frozenset({"text:p", "text:h"}),
    copied=frozenset({"text:tracked-changes", "office:annotation"}),
    items=lambda paragraph: _mixed_items(paragraph, _SPANS, _LINE_BREAKS),
    write=_write_text,
)
CONTENTS = Dialect(
    namespaces={"http://www.daisy.org/z3986/2005/ncx/": "ncx:"},
    paragraphs=frozenset({"ncx:text"}),
    copied=frozenset(),
    items=lambda paragraph: _mixed_items(paragraph, frozenset(), frozenset()),
    write=_write_text,
)


# --- XLIFF -----------------------------------------------------------------------------------

_PROTECTED = re.compile(r"""\s(?:translate\s*=\s*["']no|mtype\s*=\s*["']protected)["']""")


def _is_protected(node: XmlNode) -> bool:
    return _PROTECTED.search(node.open) is not None


def _with_target(unit: XmlNode) -> XmlNode | None:
    """Add a target with the text of the source to a unit that has none, and return the target."""
    source, target = unit.child("source"), unit.child("target")
    if source is None or _is_protected(unit):
        return None
    if target is not None and (target.text.strip() or target.nodes):
        return None
    prefix = _prefix(source)
    if target is None:
        target = XmlNode("target", f"<{prefix}target>")
        before = unit.child("seg-source") or source
        unit.children.insert(unit.children.index(before) + 1, target)
    target.open, target.close = target.open.replace("/>", ">"), f"</{prefix}target>"
    target.children = [*source.children]
    return target


_CODES = frozenset({"g", "pc", "mrk"})
XLIFF = Dialect(
    namespaces={
        "": "",
        "urn:oasis:names:tc:xliff:document:1.1": "",
        "urn:oasis:names:tc:xliff:document:1.2": "",
        "urn:oasis:names:tc:xliff:document:2.0": "",
        "urn:oasis:names:tc:xliff:document:2.1": "",
        "urn:oasis:names:tc:xliff:document:2.2": "",
    },
    paragraphs=frozenset({"trans-unit", "segment"}),
    copied=frozenset(),
    items=lambda paragraph: _mixed_items(paragraph, _CODES, frozenset()),
    write=_write_text,
    prepare=_with_target,
)

_ATTRIBUTES = r"""(?:[^<>"']|"[^"]*"|'[^']*')*?"""
_LABELLED = re.compile(
    rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?:[\w.-]+:)?(xliff|file)\b{_ATTRIBUTES}(?=/?>)", re.DOTALL
)
_VERSION_2 = re.compile(r"""\sversion\s*=\s*["']2""")


def with_target_language(document: str, language: str) -> str:
    """An XLIFF document whose target language is this one, or a variant of it such as `de-AT`."""
    is_2 = False

    def labelled(found: re.Match[str]) -> str:
        nonlocal is_2
        tag, name = found[0], found[1]
        is_2 = is_2 or (name == "xliff" and _VERSION_2.search(tag) is not None)
        if name != ("xliff" if is_2 else "file"):
            return tag
        attribute = "trgLang" if is_2 else "target-language"
        known = re.search(rf"""\s{attribute}\s*=\s*(["'])(.*?)\1""", tag, re.DOTALL)
        if known is None:
            return f'{tag.rstrip()} {attribute}="{language}"'
        if re.split("[-_]", known[2])[0].lower() == language.lower():
            return tag
        return f"{tag[: known.start(2)]}{language}{tag[known.end(2) :]}"

    return _LABELLED.sub(labelled, document)
