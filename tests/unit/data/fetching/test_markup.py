import pytest

from transept.data.fetching.datasets import Reading
from transept.data.fetching.markup import sentences
from transept.errors import DataError


def read(text: str, reading: Reading) -> list[str]:
    return [line.decode() for line in sentences(iter(text.encode().split(b"\n")), reading)]


def test_plain_lines_lose_a_carriage_return() -> None:
    assert read("a \r\nb\u2028c", "lines") == ["a ", "b\u2028c"]


def test_segments_of_sgml() -> None:
    text = """<srcset setid="newstest2014" srclang="any">
<doc sysid="ref" docid="1" genre="news" origlang="en">
<p>
<seg id="1">Standard &amp; Poor's  said &quot;no&quot;</seg>
<seg id="2"> two </seg><SEG id="3">a < b &amp;lt; c</SEG>
</p></doc></srcset>"""
    assert read(text, "segments") == ['Standard & Poor\'s said "no"', "two", "a < b &lt; c"]


def test_talks_keep_titles_and_drop_metadata() -> None:
    text = """<url>http://www.ted.com/talks/1</url>
<keywords>talks, science</keywords>
<speaker>Someone</speaker>
<talkid>1</talkid>
<title>Someone: Something</title>
<description>TED Talk Subtitles: About it.</description>
 Thank you.
<reviewer>X</reviewer>
<translator href="">Y</translator>
2 < 3"""
    assert read(text, "talks") == [
        "Someone: Something",
        "TED Talk Subtitles: About it.",
        "Thank you.",
        "2 < 3",
    ]


def test_columns() -> None:
    text = "Go.\tGeh.\tCC-BY 2.0 (France)\r\nHi.\tHallo!"
    assert read(text, "first column") == ["Go.", "Hi."]
    assert read(text, "second column") == ["Geh.", "Hallo!"]


def test_error_locates_a_line_without_columns() -> None:
    with pytest.raises(DataError, match="line 2 has no tab"):
        read("a\tb\nc", "first column")
