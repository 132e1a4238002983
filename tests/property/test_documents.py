"""Documents of random structure stay well-formed, and nothing but words is lost or added."""

import random
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.documents.builders import W, unzipped, word, writer

from transept.api.documents import Document
from transept.api.texts import Output, Translation
from transept.documents.opening import open_file

STYLES = ["", "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>"]
WORDS = ["one", "two. Three", " four ", "\u00e4 &amp; b", ".", " "]
MARK = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
LINK = "<w:r><w:instrText>HYPERLINK x</w:instrText></w:r>"
COUNTED = {"drawing", "hyperlink", "bookmarkStart", "fldChar", "tab", "instrText", "note", "a", "s"}


def translated(text: str, chance: random.Random) -> str:
    """The text with its words in another order, some of them lost, and random alignments."""
    document = Document.of(text, "html", "en")
    found = []
    for sentence in document.sentences:
        words = sentence.split()
        order = chance.sample(range(len(words)), chance.randint(1, len(words)))
        links = tuple((i, j) for j, i in enumerate(order) if chance.random() < 0.8)
        output = Output(" ".join(words[i] for i in order), 0.0, 0.0, alignment=links)
        found.append(Translation(sentence, (output,), ()))
    return document.assemble(found, 1).text


def elements(data: bytes, member: str) -> Counter[str]:
    names = (
        one.tag.rpartition("}")[2] for one in ElementTree.fromstring(unzipped(data)[member]).iter()
    )
    return Counter(name for name in names if name in COUNTED)


def runs(chance: random.Random, depth: int) -> Iterator[str]:
    """The content of a paragraph of Word."""
    for _ in range(chance.randint(0, 6)):
        kind = chance.randint(0, 9)
        inner = "".join(runs(chance, depth - 1)) if depth and kind >= 8 else ""
        if kind == 8:
            yield f"<w:hyperlink>{inner}</w:hyperlink>"
        elif kind == 9:
            begin, separate, end = (MARK.format(one) for one in ("begin", "separate", "end"))
            yield chance.choice([begin + LINK + separate, begin]) + inner + chance.choice([end, ""])
        elif kind == 7:
            yield chance.choice(
                ["<w:r><w:drawing/></w:r>", "<w:bookmarkStart/>", "<w:r><w:tab/></w:r>"]
            )
        else:
            yield f"<w:r>{chance.choice(STYLES)}<w:t>{chance.choice(WORDS)}</w:t></w:r>"


@given(st.integers(0, 1 << 30))
def test_word_documents_of_any_structure_stay_whole(seed: int) -> None:
    chance = random.Random(seed)
    data = word("".join(f"<w:p>{''.join(runs(chance, 3))}</w:p>" for _ in range(3)))
    opened = open_file(data, "x.docx")
    output = opened.written([translated(text, chance) for text in opened.texts])
    member = "word/document.xml"
    assert elements(output, member) == elements(data, member)
    for run in ElementTree.fromstring(unzipped(output)[member]).iter():
        assert not (run.text or "").strip() or run.tag.endswith(("}t", "}instrText"))
    assert W.split('"')[1] in unzipped(output)[member].decode()


def mixed(chance: random.Random, depth: int) -> Iterator[str]:
    """The content of a paragraph of OpenDocument."""
    for _ in range(chance.randint(0, 6)):
        kind = chance.randint(0, 8) if depth else 0
        inner = "".join(mixed(chance, depth - 1)) if kind >= 5 else ""
        if kind == 8:
            yield f"<text:note><text:p>{inner}</text:p></text:note>"
        elif kind >= 5:
            yield chance.choice(["<text:span>{}</text:span>", "<text:a>{}</text:a>"]).format(inner)
        else:
            yield chance.choice([*WORDS, "<text:s/>", "<text:tab/>"])


@given(st.integers(0, 1 << 30))
def test_open_documents_of_any_structure_stay_whole(seed: int) -> None:
    chance = random.Random(seed)
    data = writer("".join(f"<text:p>{''.join(mixed(chance, 3))}</text:p>" for _ in range(3)))
    opened = open_file(data, "x.odt")
    output = opened.written([translated(text, chance) for text in opened.texts])
    assert elements(output, "content.xml") == elements(data, "content.xml")
