"""OpenDocument, EPUB and XLIFF."""

import io
import zipfile

import pytest
from tests.unit.documents.builders import DECLARED, body_of, changed, unzipped, writer, zipped

from transept.documents.dialects import with_target_language
from transept.documents.opening import open_file


def test_spans_links_and_notes_of_writer_move_with_their_words() -> None:
    note = (
        '<text:note text:id="1"><text:note-citation>1</text:note-citation><text:note-body>'
        "<text:p>A note</text:p></text:note-body></text:note>"
    )
    body = (
        '<text:h>Title</text:h><text:p text:style-name="P1">I '
        '<text:span text:style-name="T1">really</text:span>'
        f" like<text:line-break/>the <text:a>house</text:a>{note}.</text:p>"
    )
    found = {
        "Title": "Titel",
        "A note": "Eine Notiz",
        'I <span id="0">really</span> like<br id="1">the <span id="2">house</span><img id="3">.': (
            'Ich mag<br id="1">das <span id="2">Haus</span><img id="3"> <span id="0">sehr</span>.'
        ),
    }
    opened, output = changed(writer(body), "x.odt", found.__getitem__)
    assert opened.texts == [*found]
    assert body_of(output, "content.xml", '1.0">', "</office:document-content>") == (
        '<text:h>Titel</text:h><text:p text:style-name="P1">Ich mag<text:line-break/>das '
        f"<text:a>Haus</text:a>{note.replace('A note', 'Eine Notiz')} "
        '<text:span text:style-name="T1">sehr</text:span>.</text:p>'
    )


def test_deleted_text_and_comments_of_writer_are_not_translated() -> None:
    body = (
        "<text:tracked-changes><text:p>Deleted</text:p></text:tracked-changes>"
        "<text:p>One<office:annotation><text:p>A comment</text:p></office:annotation> two</text:p>"
    )
    assert open_file(writer(body), "x.odt").texts == ['One<img id="0"> two']


def test_members_keep_their_order_times_and_compression() -> None:
    data = writer("<text:p>One</text:p>")
    outputs = [changed(data, "x.odp", lambda text: "Eins")[1] for _ in range(2)]
    assert outputs[0] == outputs[1]
    kept = []
    for one in (data, outputs[0]):
        infos = zipfile.ZipFile(io.BytesIO(one)).infolist()
        kept.append([(info.filename, info.date_time, info.compress_type) for info in infos])
    assert kept[0] == kept[1]
    assert kept[0][0] == ("mimetype", (2001, 2, 3, 4, 5, 6), zipfile.ZIP_STORED)
    # Readers find the format at a fixed offset.
    assert outputs[0][30:].startswith(b"mimetypeapplication/vnd.oasis.opendocument.text")


def test_chapters_and_contents_of_epub_are_translated() -> None:
    chapter = f"{DECLARED}<html><body><p>One <b>two</b></p></body></html>"
    contents = "<ncx xmlns='http://www.daisy.org/z3986/2005/ncx/'><text>Chapter</text></ncx>"
    package = "<package><title>Book</title></package>"
    resource_fork = "\0\5\26\7"
    data = zipped(
        {
            "mimetype": "application/epub+zip",
            "a.opf": package,
            "OEBPS/c1.xhtml": chapter,
            "toc.ncx": contents,
            "__MACOSX/OEBPS/._c1.xhtml": resource_fork,
        }
    )
    found = {chapter: chapter.replace("One", "Eins"), "Chapter": "Kapitel"}
    opened, output = changed(data, "x.epub", found.__getitem__)
    assert opened.texts == [*found]
    assert opened.markup == "html"
    after = {name: text.decode() for name, text in unzipped(output).items()}
    assert after["a.opf"] == package
    assert after["__MACOSX/OEBPS/._c1.xhtml"] == resource_fork
    assert after["OEBPS/c1.xhtml"] == chapter.replace("One", "Eins")
    assert after["toc.ncx"] == contents.replace("Chapter", "Kapitel")


def xliff(units: str, version: str) -> bytes:
    name = f"urn:oasis:names:tc:xliff:document:{version}"
    return f'<xliff xmlns="{name}" version="{version}"><file>{units}</file></xliff>\n'.encode()


def test_empty_targets_of_xliff_are_filled_and_inline_codes_move() -> None:
    units = (
        '<trans-unit id="1"><source>A <g id="1">red</g><x id="2"/> ball</source>'
        "<note>n</note></trans-unit>"
        '<trans-unit id="2"><source>Two</source><seg-source>Two</seg-source><alt-trans/>'
        "</trans-unit>"
        '<trans-unit id="3"><source>Three</source><target state="new"/></trans-unit>'
        '<trans-unit id="4"><source>Four</source><target>Vier</target></trans-unit>'
        '<trans-unit id="5" translate="no"><source>Five</source></trans-unit>'
        '<trans-unit id="6"><source>6</source></trans-unit>'
    )
    found = {
        'A <span id="0">red</span><img id="1"> ball': (
            'Ein <img id="1">Ball in <span id="0">Rot</span>'
        ),
        "Two": "Zwei",
        "Three": "Drei",
    }
    opened, output = changed(xliff(units, "1.2"), "x.xlf", found.__getitem__)
    assert opened.texts == [*found]
    expected = units
    target = 'Ein <x id="2"/>Ball in <g id="1">Rot</g>'
    for old, new in {
        "</source><note>": f"</source><target>{target}</target><note>",
        "</seg-source>": "</seg-source><target>Zwei</target>",
        '<target state="new"/>': '<target state="new">Drei</target>',
        "<source>6</source>": "<source>6</source><target>6</target>",
    }.items():
        expected = expected.replace(old, new)
    assert output == xliff(expected, "1.2")
    assert open_file(output, "x.xlf").texts == []


def test_segments_of_xliff_2_are_filled() -> None:
    content = 'A <pc id="1">red</pc> <mrk id="2" translate="no">X</mrk> car'
    unit = f"<unit><segment><source>{content}</source></segment></unit>"
    before = 'A <span id="0">red</span> <img id="1"> car'
    after = before.replace("red", "rotes")
    opened, output = changed(xliff(unit, "2.0"), "x.xliff", lambda text: after)
    assert opened.texts == [before]
    target = f"<target>{content.replace('red', 'rotes')}</target>"
    assert output == xliff(unit.replace("</source>", f"</source>{target}"), "2.0")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<xliff version='1.2'><file id='>'>", "<xliff version='1.2'><file id='>' L>"),
        ('<x:xliff version="1.2"><x:file/>', '<x:xliff version="1.2"><x:file L/>'),
        (
            '<xliff version="1.2"><!-- <file> --><file target-language="fr">',
            '<xliff version="1.2"><!-- <file> --><file L>',
        ),
        (
            '<xliff version="1.2"><file target-language="de-AT">',
            '<xliff version="1.2"><file target-language="de-AT">',
        ),
        ('<xliff version="2.0"><file>', '<xliff version="2.0" trgLang="de"><file>'),
    ],
)
def test_xliff_names_its_target_language(before: str, after: str) -> None:
    assert with_target_language(before, "de") == after.replace(" L", ' target-language="de"')


def test_file_gets_a_label_if_its_format_has_one_and_the_language_is_known() -> None:
    unit = "<unit><segment><source>One</source></segment></unit>"
    opened = open_file(xliff(unit, "2.2"), "x.xlf")
    assert b'version="2.2" trgLang="de">' in opened.translated(["Eins"], "de")
    assert opened.translated(["Eins"], "") == opened.written(["Eins"])
    assert open_file(b"<file>", "x.txt").translated(["<file>"], "de") == b"<file>"


def test_xml_in_another_encoding_is_written_in_utf_8() -> None:
    text = (
        '<?xml version="1.0" encoding="{}"?>'
        "<xliff><trans-unit><source>Ä</source>{}</trans-unit></xliff>"
    )
    for encoding in ("UTF-16", "ISO-8859-1"):
        data = text.format(encoding, "").encode(encoding)
        _, output = changed(data, "x.xlf", lambda text: text + "ö")
        assert output.decode() == text.format("UTF-8", "<target>Äö</target>")


def test_section_of_character_data_is_text() -> None:
    unit = "<trans-unit><source><![CDATA[a < b]]></source></trans-unit>"
    opened, output = changed(xliff(unit, "1.2"), "x.xlf", lambda text: "b &gt; a")
    assert opened.texts == ["a &lt; b"]
    assert b"<target>b &gt; a</target>" in output
