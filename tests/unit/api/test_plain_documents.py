"""Plain text with words within asterisks or tags."""

import pytest

from transept import Transducer
from transept.api.documents import Document
from transept.api.texts import Output, Translation
from transept.errors import TooLongError

MARKED = "one **two** three"


@pytest.mark.parametrize(
    ("source", "sentences"),
    [
        ("**Note:** one *two*.", ["Note: one two."]),
        ("* ***One***\n* **Two.** Three.", ["* One", "* Two.", "Three."]),
        ("**One. Two.**", ["One.", "Two."]),
        ("(*one?*) <b>two **three**</b>", ["(one?) two three"]),
        ("<0>One</0> <a href='x*'>two</a>", ["One two"]),
        ("<b>one</i> <br/> **two</b>*", ["one</i> <br/> **two*"]),
        ("<user> one</b> two", ["<user> one</b> two"]),
        # Products, arguments, inclusive forms, footnotes, code, URLs and unpaired asterisks.
        ("2 * 3 * 4 or 2*3*4", ["2 * 3 * 4 or 2*3*4"]),
        ("f(*args, **kwargs)", ["f(*args, **kwargs)"]),
        ("Kolleg*innen, Student*innen", ["Kolleg*innen, Student*innen"]),
        ("one* and two*", ["one* and two*"]),
        ("`*one*` https://example.org/*two*", ["`*one*` https://example.org/*two*"]),
        ("**one", ["**one"]),
        ("*one\ntwo*", ["*one", "two*"]),
    ],
)
def test_marks_around_words_are_not_translated(source: str, sentences: list[str]) -> None:
    document = Document.of(source, "text", "en")
    assert document.sentences == sentences
    same = [Translation(one, (Output(one, 0.0, 0.0),), ()) for one in sentences]
    assert document.assemble(same, 1).text == source


def test_asterisks_move_with_their_words() -> None:
    document = Document.of("It **really** rains.", "text", "en")
    output = Output("Es regnet wirklich.", 0.0, 0.0, alignment=((0, 0), (2, 1), (1, 2)))
    assert document.assemble([Translation("", (output,), ())], 1).text == "Es regnet **wirklich**."


def test_marked_texts_are_translated_like_the_others(transducer: Transducer) -> None:
    texts = ["one two", MARKED, "seven", "*eight* nine"]
    plain = [text.replace("*", "") for text in texts]
    found, expected = transducer.translate(texts), transducer.translate(plain)
    assert [one.text.replace("*", "") for one in found] == [one.text for one in expected]
    assert [one.text.count("*") for one in found] == [0, 4, 0, 2]
    assert [one.source for one in found] == texts
    *_, last = transducer.stream(MARKED)
    assert last.text == found[1].text


def test_alignments_are_those_of_the_text_with_asterisks(transducer: Transducer) -> None:
    aligned = transducer.translate(MARKED, alignments=True)
    ((expected, *_),) = transducer.translate_units(transducer.units([MARKED])[0])
    assert aligned.text == expected.text
    assert aligned.outputs[0].alignment


def test_error_names_the_number_among_all_texts(transducer: Transducer) -> None:
    long = f"**one** {'two ' * 60}"
    for texts, number in ((["one", long, "two"], 2), ([MARKED, "one", long.replace("*", "")], 3)):
        with pytest.raises(TooLongError) as caught:
            transducer.translate(texts, too_long="refuse")
        assert caught.value.number == number
