"""Markdown documents: blocks, inline markup, and round trips."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from transept.api.documents import Document
from transept.api.texts import Draft, Output, Translation
from transept.text.markdown import escape, fragments

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BITS = ["*", "**", "_", "~~", "`", "``", "[", "]", "](x.md)", '](<a b> "t")', "![", "[r]", "][r]",
        "\n", "\n\n", "  \n", "\r\n", "> ", "- ", "1. ", "# ", "\n# ", "| ", "|\n|---|---|\n",
        "one ", "two", " three. ", "Four", "\\*", "\\", "&amp;", "<b>", "</b>", "<br>", "😀",
        "<https://a.b>", "https://c.d/e_f", "    ", "\n```\nx\n```\n", "<div>\n", "---\n", "===\n",
        "(", ")", ",", ":", "[^1]", "[r]: /u\n", "\t", "日本。", "{#a}", "&#0;"]  # fmt: skip


def sentences(text: str) -> list[str]:
    return Document.of(text, "markdown", "en").sentences


def translated(source: str, target: str, alignment: str = "") -> str:
    """The translation of a document with one sentence."""
    links = tuple((int(i), int(j)) for i, j in (pair.split("-") for pair in alignment.split()))
    output = Output(target, 0.0, 0.0, alignment=links)
    document = Document.of(source, "markdown", "en")
    (sentence,) = document.sentences
    return document.assemble([Translation(sentence, (output,), ())], 1).text


def unchanged(text: str) -> str:
    document = Document.of(text, "markdown", "en")
    found = [Translation(one, (Output(one, 0.0, 0.0),), ()) for one in document.sentences]
    return document.assemble(found, 1).text


def shouted(text: str) -> str:
    """The document with other words in the same order."""
    document = Document.of(text, "markdown", "en")
    found = []
    for one in document.sentences:
        links = tuple((i, i) for i in range(len(one.split())))
        other = re.sub("[A-Za-z]", lambda letter: letter[0].swapcase(), one)
        found.append(Translation(one, (Output(other, 0.0, 0.0, alignment=links),), ()))
    return document.assemble(found, 1).text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A paragraph may have several lines. In a list or a quotation too.
        ("One\ntwo. Three\r\nfour.\n", ["One two.", "Three four."]),
        ("> One\n> two\nthree\n\n> > four\n", ["One two three", "four"]),
        ("- one\n  two\n- three\n\n  four\n  1. five\n", ["one two", "three", "four", "five"]),
        ("# One *two* ##\n\nThree\nfour\n---\n", ["One two", "Three four"]),
        ("One  \ntwo\\\nthree\n", ["One", "two", "three"]),
        ("- [ ] one\n- [x] two\n", ["one", "two"]),
        ("> [!NOTE]\n> One\n", ["One"]),
        # Tables.
        ("| one | two \\| 2 |\n|---|:-:|\n| `a\\|` three||\n", ["one", "two | 2", "three"]),
        ("> one | two\n> --- | ---\n> three | four\n", ["one", "two", "three", "four"]),
        # Copied blocks.
        ("---\ntitle: x\n---\none\n", ["one"]),
        ("+++\ntitle = 'x'\n+++\none\n", ["one"]),
        ("```sh\nrun\n```\n\none\n\n    code\n\n~~~\nx\n~~~\n", ["one"]),
        ("<div>\nhtml\n</div>\n\n<!-- no -->\n\none\n", ["one"]),
        ('[a]: b.md "One"\n\n[^1]: Two three.\n', ["Two three."]),
        ("one\n\n***\n\n* * *\n\ntwo\n", ["one", "two"]),
        (":::{note}\none\n:::\n\n(label)=\n# Two\n", ["one", "Two"]),
        # Inline markup.
        ("**One** _two_ ***three*** ~~four~~ `five`", ["One two three four"]),
        ("See [one *two*](a.md 'b'), [three][a] and [four].\n\n[a]: x\n[four]: y",
         ["See one two, three and four."]),
        ("[not a link] one", ["[not a link] one"]),
        ("one ![two](three.png) four [![five](a)](b)", ["one four"]),
        ("see <https://a.b/c>, https://d.e/f_g. Or a@b.c", ["see , .", "Or a@b.c"]),
        ("one[^1] <b>two</b> <br> three {#id}", ["one two", "three"]),
        (r"\*one\* 2 * 3 * 4 snake_case &amp; a_b", ["*one* 2 * 3 * 4 snake_case & a_b"]),
        ("{ref}`one` two ``a ` b`` three", ["two three"]),
    ],
)  # fmt: skip
def test_sentences_of_a_document(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
    assert unchanged(text) == text


@pytest.mark.parametrize(
    ("source", "target", "alignment", "expected"),
    [
        ("I **really** see it.\n", "Ich sehe es wirklich.", "0-0 2-1 3-2 1-3",
         "Ich sehe es **wirklich**.\n"),
        ("- see [the house](a.md) now", "sieh jetzt das Haus", "0-0 3-1 1-2 2-3",
         "- sieh jetzt [das Haus](a.md)"),
        # A link by its text keeps its label.
        ("see [one]\n\n[one]: a.md", "sieh eins", "0-0 1-1", "sieh [eins][one]\n\n[one]: a.md"),
        ("see [one][]\n\n[one]: a.md", "sieh eins", "0-0 1-1", "sieh [eins][one]\n\n[one]: a.md"),
        # A paragraph becomes one line.
        ("> one\n> two *three\n> four*\n", "eins zwei drei vier", "0-0 1-1 2-2 3-3",
         "> eins zwei *drei vier*\n"),
        # Code stays apart from other words and code.
        ("run `a` `b`, then (`c`) go", "lauf, dann () geh", "0-0 1-0 2-1 3-2 4-3",
         "`a` `b` lauf, dann (`c`) geh"),
        ("*one `a`*, two", "eins , zwei", "0-0 1-1 2-2", "*eins `a`*, zwei"),
        # Emphasis around nothing would be asterisks.
        ("one **two** three", "", "", ""),
        # Characters of the output are not markup.
        ("one", "*a* _b_ [c](d) `e` <f> &amp; a|b ~~g~~ \\* 2 * 3", "",
         r"\*a\* \_b\_ [c\](d) \`e\` \<f> \&amp; a\|b \~~g\~~ \\\* 2 * 3"),
        ("one", "1. Januar", "", r"1\. Januar"),
        ("one", "# a", "", r"\# a"),
        ("one", "> a", "", r"\> a"),
        ("one", "- a-b", "", r"\- a-b"),
    ],
)  # fmt: skip
def test_markup_moves_with_its_words(
    source: str, target: str, alignment: str, expected: str
) -> None:
    assert translated(source, target, alignment) == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_of_the_documentation_keeps_its_structure(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert unchanged(text) == text
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])

    def rendered(markdown: str) -> str:
        return " ".join(parser.render(markdown).lower().split())

    other = shouted(text)
    assert other != text
    assert rendered(other) == rendered(text)


@given(st.lists(st.sampled_from(BITS)).map("".join))
def test_identity_translation_keeps_the_document(text: str) -> None:
    assert "".join(fragment.raw for fragment in fragments(text)) == text
    parts = Document.of(text, "markdown", "en").parts
    assert "".join(part.raw + part.space for part in parts) == text
    assert unchanged(text) == text


@given(st.text(st.sampled_from("ab *_[]()`<>&;|~#->.1\\!:"), max_size=12))
def test_escaped_text_is_read_as_the_text(text: str) -> None:
    document = "x " + escape(text) + " x"
    (found,) = Document.of(document, "markdown", split=False).parts
    assert (found.text, found.inside) == (re.sub(" +", " ", f"x {text} x"), ())


def test_a_draft_has_a_stable_part_of_the_escaped_text() -> None:
    document = Document.of("x", "markdown")
    assert document.drafted("# ", Draft("a * b", stable=3)) == Draft("# a * b", len("# a "))


@pytest.mark.parametrize("evil", ["*", "**a ", "_a_ ", "*a_ ", "a**b", "`", "``a`", "[", "[a](",
                                  "![", "[a][", "](<", '](a "', "<a ", "> ", "- ", "| a", "|\n|-",
                                  "a\n", "[a]: b\n", "https://", "***a", "*a **b "])  # fmt: skip
def test_splitting_takes_linear_time(evil: str) -> None:
    Document.of(evil * 4_000, "markdown", "en")  # quadratic would take minutes
