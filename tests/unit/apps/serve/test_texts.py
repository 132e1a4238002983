"""Splitting texts, and assembling drafts of their translations."""

import pytest

from transept.api.texts import Draft, Output
from transept.apps.serve.texts import Text


def outputs(text: str) -> tuple[Output, ...]:
    return (Output(text, 0.0, 0.0),)


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
        (
            "😀 One. 👍🏽👍 Two 👩\u200d👧\n",
            "text",
            ["😀 ", "😀 A 👍🏽👍 "],
            "😀 A 👍🏽👍 B 👩\u200d👧\n",
        ),
        ("<p>One&#128512;</p>", "html", ["<p>"], "<p>A😀</p>"),
        ("1️⃣\n☎", "text", [], "1️⃣\n☎"),
    ],
)
def test_text_before_each_sentence_is_a_prefix(
    source: str, form: str, befores: list[str], whole: str
) -> None:
    text = Text.of(source, form, "en")
    done = [outputs(letter) for letter in "AB"[: len(text.sentences)]]
    assert [text.before_next(done[:n]) for n in range(len(done))] == befores
    assert text.assemble(done, 1).text == whole
    assert all(whole.startswith(before) for before in befores)


@pytest.mark.parametrize("form", ["text", "html"])
def test_model_input_is_normalized(form: str) -> None:
    text = Text.of("\ufeff15\xa0eu\xadros\u202f! \n", form, "en")
    assert text.sentences == ["15 euros !"]


def test_a_draft_is_escaped_and_counted_as_it_is_sent() -> None:
    draft = Draft("a < b & c", stable=3)
    html = Text.of("<i>x</i>", "html", "en")
    assert html.drafted("<i>", draft) == Draft("<i>a &lt; b &amp; c", len("<i>a &lt;"))
    plain = Text.of("x", "text", "en")
    assert plain.drafted("so ", draft) == Draft("so a < b & c", len("so a <"))


@pytest.mark.parametrize(("form", "less"), [("text", "<"), ("html", "&lt;")])
def test_an_emoji_inside_a_sentence_moves_with_its_neighbours(form: str, less: str) -> None:
    text = Text.of(f"One 😀 two {less} three❤️.", form, "en")
    assert text.sentences == ["One two < three."]
    assert text.is_marked
    found = Output("Zwei eins < drei.", 0.0, 0.0, alignment=((0, 1), (1, 0), (2, 2), (3, 3)))
    assert text.assemble([(found,)], 1).text == f"😀 Zwei eins {less} drei.❤️"


@pytest.mark.parametrize("sign", ["→", "€", "§", "•", "½", "™", "中", "…", "#", "1"])
def test_ordinary_symbols_are_translated(sign: str) -> None:
    assert Text.of(f"One {sign} two", "text", "en").sentences == [f"One {sign} two"]
