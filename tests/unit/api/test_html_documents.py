import html
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transept.api.documents import Document
from transept.api.texts import Output, Translation
from transept.text.html import escape
from transept.text.inline import Element, transfer
from transept.text.markup import MarkupPart

TAG = re.compile(r"""(?is)</?[a-z](?:[^"'<>]|"[^"]*"|'[^']*')*+>|</?[a-z][^<>]*>|<!--.*?-->""")
BITS = ["<p>", "</p>", "<b>", "</b>", '<a href="x>y">', "</a>", "<br/>", "<!-- no -->", "one",
        " ", ". ", "Two", "&amp;", "&lt;b&gt;", "&nbsp;", "<", ">", '"', "'", "\n",
        "<script>x<y</script>", "<pre> a  b </pre>", "<!doctype html>", "&bogus;", "<p", "</",
        "<img alt='a']>"]  # fmt: skip


def parts_of(text: str) -> tuple[MarkupPart, ...]:
    return Document.of(text, "html", "en").parts


def translated(text: str, output: str) -> str:
    taken = Document.of(text, "html", "en")
    found = [Translation("", (Output(output, -1.0, -1.0),), ()) for _ in taken.sentences]
    return taken.assemble(found, 1).text


def test_text_is_split_from_markup() -> None:
    pieces = parts_of('<p id="a">One two.  Three <b>four</b>\n</p>')
    assert [piece.text for piece in pieces] == ["", "One two.", "Three four"]
    assert [piece.space for piece in pieces] == ['<p id="a">', "  ", "\n</p>"]
    assert [piece.inside for piece in pieces] == [(), (), (Element("<b>", "</b>", 6, 10),)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("<b>All</b> of <i>it</i>.", ["All of it."]),
        ("<b>All of it.</b> <b><i>More</i></b>", ["All of it.", "More"]),
        ("one<br>two <div>three</div>", ["one", "two", "three"]),
        # An element across sentences splits both, as a paragraph would.
        ("One <b>two. Three</b> four.", ["One", "two.", "Three", "four."]),
        ("one <b>two three", ["one", "two three"]),
        ("one <b>two <i>three</b> four</i>", ["one", "two", "three", "four"]),
        ("one </b>two", ["one", "two"]),
        ("<b>one</b> " * 33, ["one"] * 33),
        ("a <b>  b\r\n c </b>  d", ["a b c d"]),
        ("run <code>ls -l</code> now", ["run now"]),
        ("run <pre>ls -l</pre> now", ["run", "now"]),
        ("one <svg-icon></svg-icon>two <code-x>three</code-x>", ["one", "two", "three"]),
        ("one <svg/>two <svg a/>three <svg>4</svg>", ["one two three"]),
        ("note<sup><a href=x>[1]</a></sup> it, 10<sup>2</sup> m<sup>th</sup>", ["note it, 10 mth"]),
        ('a <b translate="no">b c</b> d <a class="x notranslate" href=y>e</a>', ["a d"]),
        ("a <b translate=yes>b</b> <i class='notranslated'>c</i>", ["a b c"]),
        ("<p translate='no'>a</p> <p class=notranslate>b</p> <p title=notranslate>c</p>", ["c"]),
        # Quoted values may contain any character.
        ("<a title=\"<b>x</b> > 'y\" b='\"'>one</a> two", ["one two"]),
        ("<p data-x='<img onerror=y>'>one</p><!-->two", ["one", "two"]),
        ("<a it's>one</a> two", ["one two"]),
        # Not worth translating.
        ("<p>…</p> <p>one</p> <li><b>-</b> 😀 </li>", ["one"]),
        ("one<!-- . --> two<wbr>three", ["one twothree"]),
    ],
)
def test_only_block_tags_end_a_sentence(text: str, sentences: list[str]) -> None:
    assert Document.of(text, "html", "en").sentences == sentences


def test_line_break_in_html_does_not_end_a_sentence() -> None:
    assert [piece.text for piece in parts_of("one\ntwo")] == ["one two"]
    assert [piece.text for piece in parts_of("one\n\t\ttwo")] == ["one two"]


@pytest.mark.parametrize(
    "kept", ["<script>a < b</script>", "<!-- x -->", "<code>y</code>", "<style>"]
)
def test_non_prose_elements_are_kept(kept: str) -> None:
    assert translated(f"<p>one</p>{kept}", "uno") == f"<p>uno</p>{kept}"


def test_entities_are_unescaped_and_escaped() -> None:
    assert parts_of("a &lt; b &amp; c&nbsp;d")[0].text == "a < b & c d"
    assert translated("x", "<img onerror=y> & z") == "&lt;img onerror=y&gt; &amp; z"


@given(st.lists(st.sampled_from(BITS)).map("".join))
def test_tags_are_unchanged(text: str) -> None:
    found = translated(text, "uno <b> dos")
    assert sorted(TAG.findall(found)) == sorted(TAG.findall(text))
    assert "<b> dos" not in found


@given(st.lists(st.sampled_from(BITS)).map("".join), st.randoms(use_true_random=False))
def test_a_translation_has_all_its_words_and_tags(text: str, chance: Random) -> None:
    """Holds for any alignment. No element ends inside another."""
    taken = Document.of(text, "html", "en")
    outputs, words = [], []
    for sentence in taken.sentences:
        n_source, n_target = len(sentence.split()), chance.randrange(6)
        # Some words are copied from the source.
        words += [chance.choice([*sentence.split(), f"w{at}"]) for at in range(n_target)]
        links = tuple((chance.randrange(n_source), j) for j in range(n_target))
        output = Output(" ".join(words[len(words) - n_target :]), 0.0, 0.0, alignment=links)
        outputs.append(Translation(sentence, (output,), ()))
    found = taken.assemble(outputs, 1).text
    assert sorted(TAG.findall(found)) == sorted(TAG.findall(text))
    kept = re.sub(r"<(script|pre)>.*?</\1>|<!doctype html>", "", found)
    assert re.sub(r"\W", "", plain(kept)) == re.sub(r"\W", "", "".join(words))
    if is_nested(text):
        assert is_nested(found)


def plain(markup: str) -> str:
    """The characters outside tags and whitespace."""
    return re.sub(r"\s+", "", html.unescape(TAG.sub("", markup)))


def is_nested(text: str) -> bool:
    begun: list[str] = []
    for slash, name in re.findall(r"<(/?)(a|b)\b", text):
        if not slash:
            begun.append(name)
        elif not begun or begun.pop() != name:
            return False
    return not begun


@given(st.lists(st.sampled_from(BITS)).map("".join))
def test_identity_translation_keeps_the_text(text: str) -> None:
    """`transfer` does too, except for whitespace and escaping.

    It may move a tag between two punctuation marks next to them.
    """
    taken = Document.of(text, "html", "en")
    assert "".join(part.raw + part.space for part in taken.parts) == text
    found = [Translation(one, (Output(one, 0.0, 0.0),), ()) for one in taken.sentences]
    assert taken.assemble(found, 1).text == text

    def words_and_tags(markup: str) -> list[str]:
        return re.findall(rf"{TAG.pattern}|\w+", re.sub("&(amp|lt|gt|nbsp);", " ", markup))

    again = ""
    for one in taken.parts:
        links = [(i, i) for i in range(len(one.text.split()))]
        again += transfer(one.text, one.inside, one.text, links, escape) + one.space
    assert plain(again) == plain(text)
    assert words_and_tags(again) == words_and_tags(text)


@pytest.mark.parametrize("evil", ['<a "', "<a'", "<!--", "<script>", "</script ", "<a b=", "&lt;",
                                  "<b>", "</b>", "<b>x</b> ", "<b>x. </b>", "<img>", "<sup>",
                                  "<b translate=no", '<b class="'])  # fmt: skip
def test_splitting_takes_linear_time(evil: str) -> None:
    parts_of(evil * 4_000)  # quadratic would take minutes
