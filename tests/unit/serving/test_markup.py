import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transept.api.results import Output
from transept.serving.markup import split_html
from transept.serving.texts import Text

TAG = re.compile(r"</?[a-z][^<>]*>|<!--.*?-->", re.DOTALL)
BITS = ["<p>", "</p>", "<b>", '<a href="x>y">', "</a>", "<br/>", "<!-- no -->", "one", " ", ". ",
        "Two", "&amp;", "&lt;b&gt;", "&nbsp;", "<", ">", '"', "'", "\n", "<script>x<y</script>",
        "<pre> a  b </pre>", "<!doctype html>", "&bogus;", "<p", "</",
        "<img alt='a']>"]  # fmt: skip


def translated(text: str, output: str) -> str:
    taken = Text.of(text, "html", "en")
    outputs = [(Output(output, -1.0, -1.0),) for _ in taken.sentences]
    return taken.put_together(outputs, 1).text


def test_text_is_taken_out_and_markup_left() -> None:
    pieces = split_html('<p id="a">One two.  Three <b>four</b>\n</p>', "en")
    assert [piece.text for piece in pieces] == ["", "One two.", "Three", "four"]
    assert [piece.space for piece in pieces] == ['<p id="a">', "  ", " <b>", "</b>\n</p>"]


def test_a_line_break_in_html_ends_no_sentence() -> None:
    assert [piece.text for piece in split_html("one\ntwo", "en")] == ["one two"]


@pytest.mark.parametrize(
    "kept", ["<script>a < b</script>", "<!-- x -->", "<code>y</code>", "<style>"]
)
def test_what_is_no_prose_is_kept(kept: str) -> None:
    assert translated(f"<p>one</p>{kept}", "uno") == f"<p>uno</p>{kept}"


def test_entities_are_read_and_written() -> None:
    assert split_html("a &lt; b &amp; c&nbsp;d", "en")[0].text == "a < b & c\xa0d"
    assert translated("x", "<img onerror=y> & z") == "&lt;img onerror=y&gt; &amp; z"


@given(st.lists(st.sampled_from(BITS)).map("".join))
def test_tags_come_out_as_they_went_in(text: str) -> None:
    found = translated(text, "uno <b> dos")
    assert TAG.findall(found) == TAG.findall(text)
    assert "<b> dos" not in found


@given(st.lists(st.sampled_from(BITS)).map("".join))
def test_nothing_is_lost(text: str) -> None:
    again = "".join(html.escape(p.text, quote=False) + p.space for p in split_html(text, "en"))

    def plain(markup: str) -> str:
        return re.sub(r"\s+", "", html.unescape(markup))

    assert plain(again) == plain(text)


@pytest.mark.parametrize("evil", ['<a "', "<a'", "<!--", "<script>", "</script ", "<a b=", "&lt;"])
def test_time_is_in_proportion(evil: str) -> None:
    split_html(evil * 4_000, "en")  # quadratic would take minutes
