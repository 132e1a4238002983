"""Subtitles, catalogs of gettext, and texts."""

import pytest
from tests.unit.documents.builders import changed

from transept.documents.opening import FileFormat, open_file

SRT = """1
00:00:01,000 --> 00:00:02,000
I <i>really</i> like
this new house.

2
00:00:03,000 --> 00:00:04,000
- Hello.
- Bye & 1 < 2.

3
00:00:05,000 --> 00:00:06,000
{\\an8}12

"""
CUES = [
    'I <span id="0">really</span> like this new house.',
    '- Hello.<br id="0">- Bye &amp; 1 &lt; 2.',
    '<img id="0">12',
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_cues_are_wrapped_again_and_everything_else_stays(newline: str) -> None:
    data = SRT.replace("\n", newline).encode()
    german = {
        CUES[0]: 'Mir gefällt dieses neue Haus <span id="0">wirklich</span>.',
        CUES[1]: '- Hallo.<br id="0">- Bis bald &amp; 1 &lt; 2.',
    }
    opened, output = changed(data, "x.srt", lambda text: german.get(text, text))
    assert opened.texts == CUES
    expected = SRT.replace("I <i>really</i> like", "Mir gefällt dieses neue")
    expected = expected.replace("this new house.", "Haus <i>wirklich</i>.")
    expected = expected.replace("Hello", "Hallo").replace("Bye", "Bis bald")
    assert output.decode() == expected.replace("\n", newline)


def test_sentence_over_several_cues_is_one_text() -> None:
    def cues(*texts: str) -> str:
        return "".join(f"{n}\n00:0{n},0 --> 00:0{n},9\n{text}\n\n" for n, text in enumerate(texts))

    data = cues(
        "I never said", "that she took\nthe money.", "it was me.", "He <i>lied</i>", "often"
    )
    german = {
        "I never said that she took the money.": "Ich habe nie gesagt, dass sie das Geld nahm.",
        "it was me.": "ich war es.",
        'He <span id="0">lied</span>': 'Er <span id="0">log</span>',
        "often": "oft",
    }
    opened, output = changed(data.encode(), "x.srt", german.__getitem__)
    assert opened.texts == [*german]
    assert output.decode() == cues(
        "Ich habe nie", "gesagt, dass sie\ndas Geld nahm.", "ich war es.", "Er <i>log</i>", "oft"
    )
    unchanged, same = changed(data.encode(), "x.srt", str)
    assert unchanged.texts == opened.texts
    assert same == data.encode()


def test_notes_styles_and_settings_of_vtt_stay() -> None:
    vtt = (
        "\ufeffWEBVTT - Title\n\nNOTE A comment\n\nSTYLE\n::cue { color: red }\n\nname\n"
        "00:01.000 --> 00:02.000 align:start\n<v Bob>Good <c.loud>morning</c> &amp; bye<00:01.500>."
    )
    opened, output = changed(vtt.encode(), "x.vtt", lambda text: text.replace("Good", "Guten"))
    assert opened.texts == ['<img id="0">Good <span id="1">morning</span> &amp; bye<img id="2">.']
    assert output.decode() == vtt.replace("Good", "Guten")


def test_translation_without_words_does_not_break_a_cue() -> None:
    _, output = changed(SRT.encode(), "x.srt", lambda text: "\n\n")
    assert output.decode().count("-->") == 3


PO = r"""# comment
msgid ""
msgstr ""
"Plural-Forms: nplurals=2;\n"

#, c-format
msgctxt "menu"
msgid "Open %s"
msgstr ""

msgid "One \"file\"\n"
"and more\n"
msgstr   ""

msgid "_Save"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "Done"
msgstr "Fertig"

msgid "A <b>bold</b> &amp; word"
msgstr ""

#~ msgid "Old"
#~ msgstr ""
"""


def test_empty_messages_of_gettext_are_filled() -> None:
    german = {
        "Open %s": "%s öffnen",
        'One "file"<br id="0">and more<br id="0">': 'Eine "Datei"<br id="0">und mehr<br id="0">',
        "Save": "Sichern &lt; &amp;",
        "%d file": "%d Datei",
        "%d files": "%d Dateien",
        "A <b>bold</b> &amp; word": "Ein <b>fettes</b> &amp; Wort",
    }
    opened, output = changed(PO.encode(), "x.po", german.__getitem__)
    assert opened.texts == [*german]
    expected = PO
    for old, new in {
        'msgid "Open %s"\nmsgstr ""': 'msgid "Open %s"\nmsgstr "%s öffnen"',
        'msgstr   ""': 'msgstr   ""\n"Eine \\"Datei\\"\\n"\n"und mehr\\n"',
        'msgid "_Save"\nmsgstr ""': 'msgid "_Save"\nmsgstr "_Sichern < &"',
        'msgstr[0] ""': 'msgstr[0] "%d Datei"',
        'msgstr[1] ""': 'msgstr[1] "%d Dateien"',
        'word"\nmsgstr ""': 'word"\nmsgstr "Ein <b>fettes</b> &amp; Wort"',
    }.items():
        assert old in expected
        expected = expected.replace(old, new)
    assert output.decode() == expected


def test_single_plural_form_is_the_plural() -> None:
    po = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    assert open_file(po.encode(), "x.po").texts == ["%d files"]


@pytest.mark.parametrize(
    ("name", "markup"),
    [("x.txt", "text"), ("x.MD", "markdown"), ("x.html", "html"), ("x.htm", "html")],
)
def test_text_is_one_text_with_its_byte_order_mark(name: str, markup: FileFormat) -> None:
    opened, output = changed("\ufeffÄ\r\nb\n".encode(), name, str.upper)
    assert opened[:2] == (["Ä\r\nb\n"], markup)
    assert output == "\ufeffÄ\r\nB\n".encode()


@pytest.mark.parametrize("name", ["x.txt", "x.srt", "x.po", "x.md"])
def test_empty_file_stays_empty(name: str) -> None:
    opened, output = changed(b"", name, str.upper)
    assert opened.texts == []
    assert output == b""


def test_format_overrides_the_suffix() -> None:
    assert open_file(SRT.encode(), "x.txt", "srt").texts == CUES
