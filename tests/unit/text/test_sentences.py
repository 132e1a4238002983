"""Sentence splitting: a | marks each end in the examples, for any language or a specific one."""

import pytest

from transept.text.moses import Language
from transept.text.sentences import Piece, split_sentences

ANY: list[str] = [
    "It is late. | We should go! | Why? | Because.",
    "One sentence, without an end",
    # quotes and brackets close after the stop
    'He said: "Go!" | She went. | "Why?" he asked. | (Nobody knew.) | [Really.] | Ok.',
    "„Komm!“ | Er kam. | »Nein.« | Sie ging. | “Yes.” | ‘No.’ | Done.",
    # abbreviations, titles, initials
    "Mr. Smith met Dr. Jones vs. Prof. Lee, e.g. The Boss. | He left.",
    "J. R. R. Tolkien wrote it. | So did I. | The end.",
    "They live in the U.S. | The weather is fine. | The U.S. Army knows.",
    "Apples, pears etc. | The rest came at 5 p.m. | She slept.",
    "Acme Inc. Chairman Bob paid Acme Co. | It was late.",
    "She has a Ph.D. in maths.",
    "See No. 5 and pp. 7, but no. | No. | Never.",
    # numbers
    "Pi is 3.14. | Version 2.0.1 is out. | It costs $3. | $4 is too much.",
    "1. The introduction is short. | It ends.",
    "That was in 1999. | Mary knows. | There were 120. | Nobody counted.",
    # places on the web
    "See www.example.com. | Or https://a.org/b?c=d&e=f. | Write to x@y.de. | Thanks.",
    # dots and other stops
    "Wait... what? | Well… | Maybe. | Hm... | Ok!! | Really?! | Yes.",
    "Yahoo! is a company. | Is it? yes.",
    "你好。|再见！|「好。」|他说。|真的？|真的。 | 好",
    "「行く。」と言った。|彼は行った。",
    "यह एक वाक्य है। | यह दूसरा है। | هل هذا صحيح؟ | نعم.",
    "Hello . | How are you ?",
    "Good. | 😀 Fine. | – Bye. | ¿Qué? | Nada.",
    "e.g., this; i.e., that. | (Cf. Smith et al. 2017.) | Ok.",
    "Hi.\u00a0There.",  # a no-break space breaks nothing
]
ONE: list[tuple[Language, str]] = [
    ("de", "Wir kommen am 3. Mai. | Bis dann!"),
    ("de", "Der 2. Weltkrieg endete 1945. | Er war lang. | Friedrich II. König von Preußen."),
    ("de", "z. B. Die Zeit, d. h. Das Blatt, u. a. Hunde. | Z.B. Katzen bzw. Hunde."),
    ("de", "Das kostet 3 Mrd. Euro usw. | Das ist viel. | Siehe Abs. 3 und Nr. 500. | Gut."),
    ("other", "Wir kommen am 3. Mai. | Er ist 18. | Sie auch."),
    ("en", "He turned 18. | Mary knew. | 2. Method and tools. | I am 12. | Ann is 14."),
    ("fr", "M. Dupont est là. | Il dit: «Non.» | C'est fini. | Cf. p. 5.."),
    ("fr", "Il dit : « Non. » | Elle part. | « Oui ? » | « Vraiment ! » dit-il. | Fin. »"),
    ("fr", "(« Si. ») | Il ajoute : « Bon. | C'est tout. » | Puis il part."),
]


@pytest.mark.parametrize("example", ANY)
def test_sentences_are_split_in_any_language(example: str) -> None:
    check(example, "other")


@pytest.mark.parametrize(("language", "example"), ONE)
def test_sentences_are_split_by_language(language: Language, example: str) -> None:
    check(example, language)


def check(example: str, language: Language) -> None:
    # " | " marks an end at a space, "|" one without a space.
    text = example.replace(" | ", " ").replace("|", "")
    expected = [part.strip(" ") for part in example.split("|")]
    assert [piece.text for piece in split_sentences(text, language)] == expected


def test_line_break_always_ends_a_sentence() -> None:
    assert split_sentences("a title\n\nof Dr.\r\nWho") == [
        Piece("a title", "\n\n"),
        Piece("of Dr.", "\r\n"),
        Piece("Who", ""),
    ]


def test_tab_always_ends_a_sentence() -> None:
    """The cells of a table are independent, and models have not seen tabs."""
    assert split_sentences("Chair\t15.30\t4\n") == [
        Piece("Chair", "\t"),
        Piece("15.30", "\t"),
        Piece("4", "\n"),
    ]


def test_white_space_is_preserved() -> None:
    assert split_sentences(" \tOne.  Two.\n") == [
        Piece("", " \t"),
        Piece("One.", "  "),
        Piece("Two.", "\n"),
    ]
    assert split_sentences("") == []
    assert split_sentences("  ") == [Piece("", "  ")]
