"""Splitting texts, and assembling drafts of their translations."""

import pytest

from transept import SamplingConfig, Transducer
from transept.api.config import Format
from transept.api.documents import Document
from transept.api.texts import Draft, Output, Translation
from transept.errors import ConfigError, TooLongError


def found(text: str) -> Translation:
    return Translation("", (Output(text, 0.0, 0.0),), ())


@pytest.mark.parametrize(
    ("source", "form", "befores", "whole"),
    [
        (" One. Two.\n", "text", [" ", " A "], " A B\n"),
        ("一。二。", "text", ["", "A "], "A B"),
        ("<p>One. <b>Two.</b></p>", "html", ["<p>", "<p>A <b>"], "<p>A <b>B</b></p>"),
        ("<br>", "html", [], "<br>"),
        ("- -\nOne.\n…\nTwo", "text", ["- -\n", "- -\nA\n…\n"], "- -\nA\n…\nB"),
        ("*   *\n One", "text", ["*   *\n "], "*   *\n A"),
        ("<b>&lt;</b> . <p>One</p>", "html", ["<b>&lt;</b> . <p>"], "<b>&lt;</b> . <p>A</p>"),
        ("1️⃣\n☎", "text", [], "1️⃣\n☎"),
    ],
)
def test_text_before_each_sentence_is_a_prefix(
    source: str, form: Format, befores: list[str], whole: str
) -> None:
    text = Document.of(source, form, "en")
    done = [found(letter) for letter in "AB"[: len(text.sentences)]]
    assert [text.before_next(done[:n]) for n in range(len(done))] == befores
    assert text.assemble(done, 1).text == whole
    assert all(whole.startswith(before) for before in befores)


@pytest.mark.parametrize("form", ["text", "html"])
def test_model_input_is_normalized(form: Format) -> None:
    text = Document.of("\ufeff15\xa0eu\xadros\u202f! \n", form, "en")
    assert text.sentences == ["15 euros !"]


def test_a_draft_is_escaped_and_counted_as_it_is_sent() -> None:
    draft = Draft("a < b & c", stable=3)
    html = Document.of("<i>x</i>", "html", "en")
    assert html.drafted("<i>", draft) == Draft("<i>a &lt; b &amp; c", len("<i>a &lt;"))
    plain = Document.of("x", "text", "en")
    assert plain.drafted("so ", draft) == Draft("so a < b & c", len("so a <"))


@pytest.mark.parametrize(("form", "less"), [("text", "<"), ("html", "&lt;")])
def test_an_emoji_is_part_of_its_sentence(form: Format, less: str) -> None:
    text = Document.of(f"One 😀 two {less} three❤️.", form, "en")
    assert text.sentences == ["One 😀 two < three❤️."]
    assert not text.is_marked


@pytest.mark.parametrize("sign", ["→", "€", "§", "•", "½", "™", "中", "…", "#", "1"])
def test_ordinary_symbols_are_translated(sign: str) -> None:
    assert Document.of(f"One {sign} two", "text", "en").sentences == [f"One {sign} two"]


HTML = "<p>One <b>two</b>. Three!</p> <p>Four</p>\n"


def test_translate_of_a_document_translates_its_sentences(transducer: Transducer) -> None:
    document = Document.of(HTML, "html")
    assert document.sentences == ["One two.", "Three!", "Four"]
    each = transducer.translate(document.sentences, split=False, alignments=True, n_best=2)
    expected = document.assemble(each, 2)
    result, empty = transducer.translate([HTML, "<br>"], format="html", n_best=2)
    assert result == expected
    assert result.text.startswith("<p>")
    assert result.text.endswith("</p>\n")
    assert [one.source for one in result.sentences if one.source] == document.sentences
    assert empty.text == "<br>"


def test_a_document_can_be_sampled_and_left_unsplit(transducer: Transducer) -> None:
    sampling = SamplingConfig(seed=1)
    result = transducer.translate(HTML, format="html", sampling=sampling, n_best=3)
    assert len(result.outputs) == 3
    whole = transducer.translate(HTML, format="html", split=False)
    sources = [one.source for one in whole.sentences if one.source]
    assert sources == ["One two. Three!", "Four"]


def test_a_sentence_of_a_document_that_is_too_long_has_the_number_of_the_document(
    transducer: Transducer,
) -> None:
    long = f"<p>one</p><p>{'two three ' * 30}</p>"
    (short, split) = transducer.translate(["<p>one</p><p>two</p>", long], format="html")
    assert short.too_long == ()
    n_tokens = len(transducer.source_tokenizer.encode(("two three " * 30).strip())) + 1
    assert split.too_long == (n_tokens,)
    with pytest.raises(TooLongError, match=r"text 2: .*; too_long='split' splits it") as refused:
        transducer.translate(["<p>one</p><p>two</p>", long], format="html", too_long="refuse")
    assert refused.value.enough == n_tokens


def test_options_that_do_not_fit_a_document_are_rejected(transducer: Transducer) -> None:
    what = "cannot be combined with the format html; omit it"
    with pytest.raises(ConfigError, match=f"alignments: {what}"):
        transducer.translate(HTML, format="html", alignments=True)
    with pytest.raises(ConfigError, match=f"prefix: {what}"):
        transducer.translate(HTML, format="html", prefix="A")
    with pytest.raises(ConfigError, match="format: 'pdf' is not one of 'text', 'html', 'markdown'"):
        transducer.translate(HTML, format="pdf")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="format: html is not supported for streaming"):
        next(transducer.stream(HTML, format="html"))
    with pytest.raises(ConfigError, match="format: html is not supported for units"):
        transducer.units([HTML], format="html")
