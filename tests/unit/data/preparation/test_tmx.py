import itertools

import pytest

from transept.data.preparation import tmx
from transept.data.preparation.tmx import TranslationUnit, read_units
from transept.errors import DataError


def units(text: str | bytes, *languages: str, block: int = 7) -> list[TranslationUnit]:
    raw = text.encode() if isinstance(text, str) else text
    blocks = (raw[i : i + block] for i in range(0, len(raw), block))
    source, target = languages or ("en", "de")
    return list(read_units(blocks, (source, target), "x.tmx"))


def document(*variants: tuple[str, str], head: str = "") -> str:
    body = "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in variants)
    return f"{head}<tmx version='1.4'><header/><body>\n<tu>{body}</tu></body></tmx>"


def test_unit_has_line_and_text() -> None:
    assert units(document(("en", "a &amp; b"), ("de", "c"))) == [TranslationUnit(2, "a & b", "c")]


def test_order_and_other_languages_do_not_matter() -> None:
    text = document(("fr", "x"), ("de", "c"), ("en", "a"))
    assert units(text) == [TranslationUnit(2, "a", "c")]
    assert units(text, "fr", "en") == [TranslationUnit(2, "x", "a")]


@pytest.mark.parametrize("code", ["en-GB", "EN", "en_us", "En-gb"])
def test_language_matches_its_regions(code: str) -> None:
    assert units(document((code, "a"), ("de", "c"))) == [TranslationUnit(2, "a", "c")]


def test_region_does_not_match_its_language() -> None:
    assert units(document(("en", "a"), ("de", "c")), "en-GB", "de") == [TranslationUnit(2, "", "c")]
    assert units(document(("eng", "a"), ("de", "c"))) == [TranslationUnit(2, "", "c")]


def test_old_lang_attribute_is_read() -> None:
    text = "<tmx><body><tu><tuv lang='EN'><seg>a</seg></tuv></tu></body></tmx>"
    assert units(text) == [TranslationUnit(1, "a", "")]


def test_formatting_codes_are_dropped() -> None:
    text = '<bpt i="1">{\\b </bpt>bold<ept i="1">}</ept> and <hi>high</hi><ph>x<sub>y</sub>z</ph>'
    assert units(document(("en", text), ("de", "c"))) == [TranslationUnit(2, "bold and high", "c")]


def test_white_space_is_normalized() -> None:
    assert units(document(("en", "\n  a\n  b\t"), ("de", "c"))) == [TranslationUnit(2, "a b", "c")]


def test_first_of_several_variants_is_used() -> None:
    assert units(document(("en", "a"), ("en", "b"), ("de", "c"))) == [TranslationUnit(2, "a", "c")]


def test_utf_16() -> None:
    text = document(("en", "ä"), ("de", "→"), head='<?xml version="1.0" encoding="UTF-16"?>')
    assert units(text.encode("utf-16")) == [TranslationUnit(2, "ä", "→")]


def test_units_are_yielded_before_the_file_ends() -> None:
    unit = b'<tu><tuv xml:lang="en"><seg>a</seg></tuv></tu>'
    endless = itertools.chain([b"<tmx><body>"], itertools.repeat(unit))
    found = read_units(endless, ("en", "de"), "x.tmx")
    assert len(list(itertools.islice(found, 20_000))) == 20_000


BOMB = """<!DOCTYPE tmx [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>"""
EXTERNAL = """<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>"""


@pytest.mark.parametrize("head", [BOMB, EXTERNAL, "<!DOCTYPE tmx [<!ELEMENT tmx ANY>]>"])
def test_internal_dtd_is_rejected(head: str) -> None:
    with pytest.raises(DataError, match=r"x\.tmx, line 1: has an internal DTD"):
        units(document(("en", "&a;"), ("de", "c"), head=head))


def test_external_dtd_is_not_opened() -> None:
    head = '<!DOCTYPE tmx SYSTEM "/no/such/file.dtd">'
    assert units(document(("en", "a"), ("de", "c"), head=head)) == [TranslationUnit(2, "a", "c")]
    with pytest.raises(DataError, match="undeclared entity 'a'"):
        units(document(("en", "&a;"), ("de", "c"), head=head))


@pytest.mark.parametrize(
    ("text", "line"),
    [("<tmx>\n<body>\n</tmx>", 3), ("", 1), ("<tmx><body>", 1), (b"<tmx>\n\xff</tmx>", 2)],
)
def test_malformed_xml_is_reported_with_its_line(text: str | bytes, line: int) -> None:
    with pytest.raises(DataError, match=rf"x\.tmx, line {line}: not well-formed"):
        units(text)


def test_segment_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tmx, "UNIT_LIMIT", 1000)
    with pytest.raises(DataError, match="more than 1,000 characters"):
        units(document(("en", "a" * 2000), ("de", "c")))


def test_tag_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tmx, "TAG_LIMIT", 1 << 20)
    endless = itertools.chain([b"<tmx><body><tu x='"], itertools.repeat(b"a" * 65536))
    with pytest.raises(DataError, match="tag of more than 1 MiB"):
        list(read_units(endless, ("en", "de"), "x.tmx"))
