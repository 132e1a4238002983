"""Damaged and hostile files are rejected with an error that names the file."""

import re
import struct

import pytest
from tests.unit.documents.builders import W, word, writer, zipped

from transept.documents import archive, elements, opening
from transept.documents.opening import open_file
from transept.errors import DataError

PARAGRAPH = "<w:p><w:r><w:t>One</w:t></w:r></w:p>"
DOCUMENT = f"<w:document {W}>{PARAGRAPH}</w:document>"
MAIN = "word/document.xml"


def rejected(data: bytes, why: str, name: str = "x.docx") -> None:
    with pytest.raises(DataError, match=why) as caught:
        open_file(data, name)
    assert str(caught.value).startswith(name)
    assert ";" in str(caught.value), "there is no cure"


def patched(data: bytes, member: str, offset: int, value: bytes) -> bytes:
    """A zip file with other bytes in the entry of a member in its directory."""
    entry = [found.start() for found in re.finditer(b"PK\1\2", data)]
    at = next(one for one in entry if data[one + 46 :].startswith(member.encode()))
    return data[: at + offset] + value + data[at + offset + len(value) :]


@pytest.mark.parametrize(
    "document",
    [
        '<!DOCTYPE d [<!ENTITY a "b">]><d>&a;</d>',
        '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><d>&a;</d>',
        '<!DOCTYPE d [<!ENTITY % a SYSTEM "http://example.org/x.dtd"> %a;]><d/>',
        '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;">]><d>&c;</d>',
    ],
)
@pytest.mark.parametrize("name", ["x.docx", "x.xliff"])
def test_entities_are_rejected(document: str, name: str) -> None:
    data = document.encode() if name == "x.xliff" else zipped({MAIN: document})
    rejected(data, "declares an entity", name)


@pytest.mark.parametrize(
    "document", ["", "<a>", "<a></b>", "text", "<a>\x00</a>", "<a b=1/>", "<x:a/>", "<a>&b;</a>"]
)
def test_malformed_xml_is_rejected(document: str) -> None:
    rejected(zipped({MAIN: document}), r"x\.docx, word/document\.xml: is damaged")


def test_deep_nesting_is_rejected() -> None:
    deep = f"<w:document {W}>{'<w:p>' * 100_000}"
    rejected(zipped({MAIN: deep}), "nested more than 200 deep")


def test_nesting_up_to_the_limit_is_read() -> None:
    deep = "<w:p><w:r><w:t>One</w:t><w:x>" * 40 + "</w:x></w:r></w:p>" * 40
    opened = open_file(word(deep), "x.docx")
    assert len(opened.texts) == 40
    assert len(open_file(opened.written(["Zwei"] * 40), "x.docx").texts) == 40


def test_document_type_without_entities_is_accepted() -> None:
    data = zipped({MAIN: f'<!DOCTYPE d SYSTEM "nowhere.dtd">{DOCUMENT}'})
    assert open_file(data, "x.docx").texts == ["One"]


@pytest.mark.parametrize(
    "data",
    [b"", b"PK", b"no zip file", zipped({MAIN: DOCUMENT})[:-30], zipped({MAIN: DOCUMENT})[20:]],
)
def test_other_and_truncated_files_are_rejected(data: bytes) -> None:
    rejected(data, "is damaged")


def test_damaged_member_is_rejected() -> None:
    data = bytearray(word(PARAGRAPH))
    at = data.index(MAIN.encode()) + len(MAIN) + 5
    data[at : at + 10] = b"0123456789"
    rejected(bytes(data), "is damaged")


def test_zip_without_the_right_members_is_rejected() -> None:
    rejected(zipped({"a.txt": "One"}), "contains no text of this format")


def test_old_and_encrypted_office_files_are_rejected() -> None:
    rejected(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512), "is encrypted, or has the format")


def test_encrypted_members_are_rejected() -> None:
    rejected(patched(word(PARAGRAPH), MAIN, 8, b"\1\0"), "is encrypted")
    protected = {"content.xml": "\0", "META-INF/manifest.xml": "<manifest:encryption-data/>"}
    rejected(zipped(protected), "is encrypted", "x.odt")
    book = {"a.xhtml": "\0", "META-INF/encryption.xml": '<CipherReference URI="a.xhtml"/>'}
    rejected(zipped(book), "is encrypted", "x.epub")


def test_obfuscated_fonts_do_not_make_a_book_encrypted() -> None:
    book = {"a.xhtml": "<p>One</p>", "META-INF/encryption.xml": '<CipherReference URI="f.otf"/>'}
    assert open_file(zipped(book), "x.epub").texts == ["<p>One</p>"]


def test_declared_bomb_is_rejected() -> None:
    rejected(zipped({MAIN: DOCUMENT, "bomb": bytes(30_000_000)}), "that compressed too well")


def test_picture_of_a_large_blank_area_is_copied() -> None:
    data = zipped({MAIN: DOCUMENT, "word/media/image1.emf": bytes(3_000_000)})
    assert open_file(data, "x.docx").texts == ["One"]


def test_many_members_of_moderate_ratio_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_EXPANDED", 1_000_000)
    members = {f"{number}": bytes(200_000) for number in range(6)}
    rejected(zipped(members | {MAIN: DOCUMENT}), "decompressed, more than")


def test_bomb_that_declares_a_small_size_is_rejected() -> None:
    data = zipped({MAIN: f"<w:document {W}>{PARAGRAPH * 100_000}</w:document>"})
    rejected(patched(data, MAIN, 24, struct.pack("<I", 1000)), "is damaged")


def test_text_that_needs_much_memory_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MOST_XML", 100)
    for data, name in ((word(PARAGRAPH), "x.docx"), (b"a" * 101, "x.txt")):
        rejected(data, "bytes of text and markup", name)
    monkeypatch.setattr(archive, "MOST_BYTES", 100)
    rejected(bytes(101), "more than 100", "x.txt")


def test_too_many_elements_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    data = word(PARAGRAPH * 5)
    monkeypatch.setattr(elements, "MOST_ELEMENTS", 18)
    assert len(open_file(data, "x.docx").texts) == 5
    monkeypatch.setattr(elements, "MOST_ELEMENTS", 17)
    rejected(data, "has more than 17 elements")


@pytest.mark.parametrize(("name", "text"), [("x.srt", b"-->\na\n\n"), ("x.po", b'msgstr ""\n')])
def test_too_many_texts_are_rejected(
    monkeypatch: pytest.MonkeyPatch, name: str, text: bytes
) -> None:
    monkeypatch.setattr(opening, "MOST_TEXTS", 3)
    open_file(text * 3, name)
    rejected(text * 4, "has 4 texts, more than 3", name)


def test_too_many_members_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 10)
    data = zipped({f"{number}": b"" for number in range(11)} | {MAIN: DOCUMENT})
    rejected(data, "12 members")
    monkeypatch.setattr(archive, "MOST_DIRECTORY", 100)
    rejected(data, "too many members")


def test_archive_in_an_archive_is_copied_and_not_opened() -> None:
    inner = zipped({"bomb": bytes(30_000_000)})
    data = zipped({MAIN: DOCUMENT, "word/embeddings/a.docx": inner})
    assert open_file(data, "x.docx").texts == ["One"]


@pytest.mark.parametrize(
    "name", ["../evil.xml", "/etc/evil.xml", "a/../../evil.xml", "C:/evil.xml", "a\\b"]
)
def test_members_outside_of_the_archive_are_rejected(name: str) -> None:
    rejected(zipped({MAIN: DOCUMENT, name: ""}), "is outside of the archive")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_with_the_same_name_are_rejected() -> None:
    # Readers disagree which one counts.
    data = zipped({MAIN: DOCUMENT, "word/documenX.xml": ""})
    rejected(data.replace(b"word/documenX.xml", MAIN.encode()), "occurs twice")


def test_other_compression_is_rejected() -> None:
    rejected(patched(word(PARAGRAPH), MAIN, 10, b"\x0c\0"), "unusual compression")


def test_unknown_suffix_is_rejected_with_the_formats() -> None:
    rejected(b"", r"the formats are \.txt, .*\.docx", "x.pdf")
    rejected(b"", "without a suffix", "x")


@pytest.mark.parametrize(("data", "why"), [(b"a\xff", "is not UTF-8"), (b"a\0", "NUL byte")])
@pytest.mark.parametrize("name", ["x.txt", "x.srt", "x.po", "x.html"])
def test_binary_data_is_rejected(name: str, data: bytes, why: str) -> None:
    rejected(data, why, name)


@pytest.mark.slow
def test_many_formats_and_fields_take_linear_time() -> None:
    bold, plain = "<w:r><w:rPr><w:b/></w:rPr><w:t>a</w:t></w:r>", "<w:r><w:t>a</w:t></w:r>"
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    body = f"<w:p>{(bold + plain) * 20_000}</w:p><w:p>{plain}{begin * 40_000}</w:p>"
    data = zipped({MAIN: f"<w:document {W}>{body}</w:document>"}, stored=[MAIN])
    opened = open_file(data, "x.docx")
    assert opened.texts[0].count("<span") == 20_000
    opened.written([text.replace("a", "b") for text in opened.texts])


def test_name_of_an_odt_file_is_in_its_errors() -> None:
    rejected(writer("<text:p>"), r"x\.odt, content\.xml: is damaged", "x.odt")
