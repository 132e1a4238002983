"""Placement of inline markup in a translation."""

import pytest

from transept.text.html import HTML
from transept.text.inline import transfer
from transept.text.markup import split_markup
from transept.text.sentences import split_sentences


def translated(source: str, target: str, alignment: str) -> str:
    (part,) = split_markup(source, HTML, split_sentences)
    pairs = [pair.split("-") for pair in alignment.split()]
    return transfer(
        part.text, part.inside, target, [(int(i), int(j)) for i, j in pairs], HTML.write
    )


@pytest.mark.parametrize(
    ("source", "target", "alignment", "expected"),
    [
        # An element moves with its words.
        ("I <b>really</b> see it.", "Ich sehe es wirklich.", "0-0 2-1 3-2 1-3",
         "Ich sehe es <b>wirklich</b>."),
        # Several words stay together, with the words between them.
        ("See <a>the new house</a> now.", "Sieh jetzt das neue, Haus an.",
         "0-0 4-1 1-2 2-3 3-4 0-5", "Sieh jetzt <a>das neue, Haus</a> an."),
        ("See <a>the house</a>.", "Sieh das da Haus.", "0-0 1-1 0-2 2-3",
         "Sieh <a>das da Haus</a>."),
        # If the aligned words are far apart, the longer part gets the element.
        ("I <b>stand up</b> at 7.", "Ich stehe um 7 Uhr auf.", "0-0 1-1 3-2 4-3 4-4 2-5",
         "Ich <b>stehe</b> um 7 Uhr auf."),
        ("He <b>met</b> the man.", "Er hat den Mann getroffen.", "0-0 1-1 2-2 3-3 1-4",
         "Er hat den Mann <b>getroffen</b>."),
        # Nested elements stay nested; neighbours may swap.
        ("<a>one <i>two</i></a> <b>three</b>", "drei zwei eins", "2-0 1-1 0-2",
         "<b>drei</b> <a><i>zwei</i> eins</a>"),
        # Punctuation inside the element stays inside.
        ("Go (<i>home</i>)!", "Geh (heim)!", "0-0 1-1", "Geh (<i>heim</i>)!"),
        ("Go <i>(home)</i>!", "Geh (heim)!", "0-0 1-1", "Geh <i>(heim)</i>!"),
        # A part of a word is matched again, or the whole word is used.
        ("H<sub>2</sub>O now", "Jetzt H2O", "1-0 0-1", "Jetzt H<sub>2</sub>O"),
        ("level <b>1</b><i>2</i>] now", "jetzt Stufe 12]", "2-0 0-1 1-2",
         "jetzt Stufe <b>1</b><i>2</i>]"),
        ("<b>W</b>ord of", "von Wort", "1-0 0-1", "von <b>W</b>ort"),
        ("<b>h</b>ome now", "jetzt zuhaus", "1-0 0-1", "jetzt zu<b>h</b>aus"),
        ("<b>y</b>es, no", "ja, nein", "0-0 1-1", "<b>ja</b>, nein"),
        # An element without words goes before the same word, or after an adjacent one.
        ("one <img> two", "zwei eins", "1-0 0-1", "<img> zwei eins"),
        ("one<img> two", "zwei eins", "1-0 0-1", "zwei eins<img>"),
        ("one<img>, two", "eins, zwei", "0-0 1-1", "eins<img>, zwei"),
        ("one<img>, two", "eins zwei", "0-0 1-1", "eins<img> zwei"),
        ("one <!-- x --> two", "eins", "0-0", "eins <!-- x -->"),
        # An element never moves into another element.
        ("<a>one two</a> <img> three", "eins drei zwei", "0-0 2-1 1-2",
         "<a>eins drei zwei</a> <img>"),
        ("We <code>go</code> now", "Jetzt gehen wir", "1-0 0-2", "<code>go</code> Jetzt gehen wir"),
        ("one note<sup>[1]</sup> two", "zwei Note eins", "2-0 1-1 0-2",
         "zwei Note<sup>[1]</sup> eins"),
        ("Call <b translate=no>Big Ben</b> now", "Ruf jetzt an", "0-0 1-1 0-2",
         "Ruf <b translate=no>Big Ben</b> jetzt an"),
        # Unaligned words use a neighbouring word; otherwise the element is empty.
        ("one <b>two</b> three", "eins drei", "0-0 2-1", "eins <b>drei</b>"),
        ("one <b>two</b>", "eins und", "0-0 0-1", "<b>eins</b> und"),
        ("one <b>two</b> <i>three</i>", "drei", "2-0", "<b></b><i>drei</i>"),
        ("one <b>two</b> three", "", "", "<b></b>"),
        ("a <b>&lt;</b> b", "a < b & c", "0-0 1-1 2-2 2-3 2-4", "a <b>&lt;</b> b &amp; c"),
    ],
)  # fmt: skip
def test_markup_moves_with_its_words(
    source: str, target: str, alignment: str, expected: str
) -> None:
    assert translated(source, target, alignment) == expected
