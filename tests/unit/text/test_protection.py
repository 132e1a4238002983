"""A sentence as a model reads it, and its translation."""

import pytest

from transept.text.protection import Masked, before_repetition
from transept.text.spans import MASKS

NAME, FIGURE = MASKS[0], MASKS[len(MASKS) // 2]


def test_masked_replaces_spans_and_restored_puts_them_back() -> None:
    masked = Masked.of("Mail a@b.de at 3:30 pm.", languages=("en", "de"))
    assert masked.text == f"Mail {NAME} at {FIGURE}."
    assert masked.restored(f"Um {FIGURE} an {NAME} schreiben.") == (
        "Um 15:30 Uhr an a@b.de schreiben."
    )


@pytest.mark.parametrize(
    ("languages", "source", "target"),
    [
        (("en", "de"), "“a@b.de”", "„a@b.de“"),
        (("de", "en"), "„a@b.de“", "“a@b.de”"),
        (("de", "en"), "»a@b.de«", "“a@b.de”"),
        (("en", "de"), "‘a@b.de’", "‚a@b.de‘"),
        (("en", "de"), '"a@b.de"', '"a@b.de"'),
        (("en", "de"), "'a@b.de'", "'a@b.de'"),
        (("en", "cs"), "“a@b.de”", "“a@b.de”"),
    ],
)
def test_symbol_of_a_span_stands_for_the_quotation_marks_around_it(
    languages: tuple[str, str], source: str, target: str
) -> None:
    masked = Masked.of(f"He wrote {source}.", languages=languages)
    assert masked.text == f"He wrote {NAME}."
    assert masked.restored(f"Er schrieb {NAME}.") == f"Er schrieb {target}."


@pytest.mark.parametrize("source", ["“Write a@b.de”", "the users' {x}'s", "”a@b.de“", "“a@b.de"])
def test_other_quotation_marks_are_not_part_of_a_span(source: str) -> None:
    (span,) = Masked.of(source, languages=("en", "de")).spans
    assert span.source in ("a@b.de", "{x}")


def test_is_kept_fails_for_a_lost_doubled_or_invented_span() -> None:
    masked = Masked.of("Mail a@b.de.")
    assert masked.is_kept(f"An {NAME}.")
    assert not masked.is_kept("An ihn.")
    assert not masked.is_kept(f"{NAME} an {NAME}.")
    assert not masked.is_kept(f"{NAME} um {FIGURE}.")


def test_is_kept_fails_for_a_closing_tag_before_its_opening_tag() -> None:
    masked = Masked.of("Read the <b>terms</b> of <br/> use.")
    opening, closing, alone = (span.mask for span in masked.spans)
    assert masked.is_kept(f"{alone} Lies {opening}sie{closing}.")
    assert not masked.is_kept(f"Lies {closing}sie{opening} {alone}.")
    swapped = Masked.of("<b>One</b> or <b>two</b>.")
    first, second, third, fourth = (span.mask for span in swapped.spans)
    assert swapped.is_kept(f"{third}Zwei{fourth} oder {first}eins{second}.")


def test_without_symbols_spans_stay_in_the_text() -> None:
    masked = Masked.of("Mail a@b.de at 3:30 pm.", masks=())
    assert masked.text == "Mail a@b.de at 3:30 pm."
    assert masked.is_kept("An a@b.de um halb vier.")
    assert not masked.is_kept("An a@b.")


def test_more_spans_than_symbols_are_restored_in_order() -> None:
    names = [f"{{x{number}}}" for number in range(7)]
    masked = Masked.of(" ".join(names) + " are here")
    assert masked.is_kept(masked.text)
    assert masked.restored(masked.text) == " ".join(names) + " are here"


@pytest.mark.parametrize(
    ("source", "read", "output", "restored"),
    [
        ("The word ‘no’.", "The word “no”.", "Das Wort „nein“.", "Das Wort ‚nein‘."),
        ("‘I don’t know,’ he said.", "“I don’t know,” he said.", "„Ja“.", "‚Ja‘."),
        (
            "Press 'Save as'",
            'Press "Save as"',
            'Drücken Sie "Speichern"',
            "Drücken Sie 'Speichern'",
        ),
        ("Das Wort ‚nein‘.", "Das Wort „nein“.", "The word “no”.", "The word ‘no’."),
        ("PRESS ‘GO’ NOW", "Press “go” now", "Jetzt „los“ drücken", "JETZT ‚LOS‘ DRÜCKEN"),
    ],
)
def test_single_quotation_marks_are_read_as_double_ones(
    source: str, read: str, output: str, restored: str
) -> None:
    masked = Masked.of(source)
    assert masked.text == read
    assert masked.restored(output) == restored


@pytest.mark.parametrize(
    "source",
    [
        "The workers’ rights and the dogs’ food.",
        "The '80s and the '90s.",
        "Rock 'n' roll isn't dead, don't worry.",
        "He said: “She wrote ‘no’ there.”",
        "Run `echo 'all of it'` now.",
    ],
)
def test_apostrophes_and_nested_quotations_are_not_changed(source: str) -> None:
    masked = Masked.of(source, masks=())
    assert masked.text == source
    assert masked.forms == ()


def test_characters_of_windows_are_read_and_written_as_such() -> None:
    masked = Masked.of("\x93Hello\x94 costs 3 \x80")
    assert masked.text == "“Hello” costs 3 €"
    assert masked.begun("\x84Hal") == "„Hal"


@pytest.mark.parametrize(
    "marker", ["- ", "* ", "• ", "1. ", "2) ", "a) ", "[ ] ", "- [x] ", "🙂 ", "→ ", "3.2.1 "]
)
def test_list_markers_and_leading_emoji_are_kept_apart(marker: str) -> None:
    masked = Masked.of(f"{marker}Buy milk 🎉🎂")
    assert (masked.before, masked.text, masked.after) == (marker, "Buy milk", " 🎉🎂")
    assert masked.restored("Milch kaufen.") == f"{marker}Milch kaufen 🎉🎂"


def test_only_several_hashtags_at_the_end_are_kept_apart() -> None:
    masked = Masked.of("A day at the lake 🎉 #sun #no-filter")
    assert (masked.text, masked.after) == ("A day at the lake", " 🎉 #sun #no-filter")
    for text in ("I love #paris", "Ask in #help, #news", "#a #b"):
        assert Masked.of(text).after == ""


@pytest.mark.parametrize(
    ("languages", "source", "output", "expected"),
    [
        (("de", "en"), "„Es ist spät.", "\"It's late.", "“It's late."),
        (("de", "en"), "Gehen wir“, sagte er.", "Let's go, he said.", "Let's go”, he said."),
        (("en", "de"), "“It is late.", "„Es ist spät.", "„Es ist spät."),
        (("", ""), "„Es ist spät.", "\"It's late.", "„It's late."),
        (("de", "en"), "„Ja“ und „Nein“", "“Yes” and “No”", "“Yes” and “No”"),
        (("fr", "en"), "« Il est tard.", "«It's late.", "\"It's late."),
        (("fr", "en"), "Partons », dit-il.", "Let's go, he said.", "Let's go\", he said."),
        (("fr", "en"), "Et c'est tout. »", "And that is all. »", 'And that is all."'),
    ],
)
def test_half_of_a_quotation_is_written_as_in_the_target_language(
    languages: tuple[str, str], source: str, output: str, expected: str
) -> None:
    assert Masked.of(source, languages=languages).restored(output) == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [("de", "Das „Genie“ und „es“"), ("fr", 'Das " Genie" und »es«'), ("", "Das «Genie» und »es«")],
)
def test_guillemets_are_read_as_the_marks_of_the_language(language: str, expected: str) -> None:
    masked = Masked.of("Das «Genie» und »es«", languages=(language, ""))
    assert masked.text == expected


@pytest.mark.parametrize(
    "output",
    [
        *("zehn zehn zehn vier", "(zehn zehn zehn)", "x-zehn zehn zehn zehnt", "ein einem", "a, a"),
        *("wie z. B. B. B. Bäume", "zehn. zehn zehn zehn.", "Nr. Nr. Nr. 3"),
    ],
)
def test_settled_starts_of_an_output_begin_its_translation(output: str) -> None:
    masked = Masked.of("ten")
    whole = masked.begun(output)
    for end in range(len(output) + 1):
        settled = before_repetition(output[:end])
        assert output.startswith(settled)
        assert whole.startswith(masked.begun(settled))
    assert before_repetition("eins zwei") == "eins zwei"


def test_ordinal_at_the_start_is_not_a_list_marker() -> None:
    assert Masked.of("1. Mai ist ein Feiertag.").before == ""


@pytest.mark.parametrize("text", ["4.8.0 was released.", "1.2.3-rc1 Beta", "192.168.1.10 Printer"])
def test_version_at_the_start_is_not_a_list_marker(text: str) -> None:
    assert Masked.of(text).before == ""


def test_spaces_within_guillemets_are_not_read() -> None:
    assert Masked.of("One writes « Bonjour ».", languages=("en", "de")).text == (
        "One writes “Bonjour”."
    )


def test_capitals_are_read_in_lower_case_and_written_in_capitals() -> None:
    masked = Masked.of("DO NOT ENTER {room}!")
    assert masked.text == f"Do not enter {NAME}!"
    assert masked.restored(f"Nicht {NAME} betreten!") == "NICHT {room} BETRETEN!"


def test_stressed_words_are_read_in_lower_case_outside_of_spans() -> None:
    """A model may omit a word that it does not know in capitals: `must NOT` became `müssen`."""
    masked = Masked.of("You must NOT open https://x.org/NOT. NEVER!", masks=())
    assert masked.text == "You must not open https://x.org/NOT. Never!"


@pytest.mark.parametrize(
    "text", ["https://example.org", "42", "...", "🎉", "{x} → 3:30", "- [ ] 5"]
)
def test_nothing_is_left_to_translate_without_words(text: str) -> None:
    assert not Masked.of(text).has_words


def test_invisible_characters_and_wide_spaces_are_not_given_to_the_model() -> None:
    assert Masked.of("The win\u200bdow\xa0is ex\xadpensive.").text == "The window is expensive."


def test_letters_with_separate_accents_are_read_as_one_character() -> None:
    assert Masked.of("Die Tu\u0308r ist gru\u0308n.").text == "Die Tür ist grün."


def test_realigned_counts_the_words_of_markers_and_spans() -> None:
    masked = Masked.of("- Use `a b` now")
    output = f"Nutze jetzt {NAME}"
    assert masked.realigned(((0, 0), (1, 2), (2, 1)), output) == (
        (0, 0), (1, 1), (2, 3), (2, 4), (3, 3), (3, 4), (4, 2),
    )  # fmt: skip


def test_realigned_counts_a_repeated_word_once() -> None:
    links = ((0, 0), (1, 1), (1, 2), (1, 3), (2, 4))
    masked = Masked("far away today")
    output = "weit entfernt entfernt entfernt heute"
    assert masked.restored(output) == "weit entfernt heute"
    assert masked.realigned(links, output) == ((0, 0), (1, 1), (2, 2))
    ended = "weit entfernt entfernt entfernt."
    assert masked.realigned(links[:4], ended) == ((0, 0), (1, 1))


def test_repetition_of_the_source_is_not_a_loop() -> None:
    assert Masked("It was nice").is_loop("so so so so so")
    assert not Masked("no no no no no").is_loop("nein nein nein nein nein")


def test_items_of_a_list_twice_are_a_loop() -> None:
    echo = "Hut, Schal, Schal, eine Pfanne, die Pfanne, Seife"
    assert Masked("a hat, a scarf, a pan, a pot, soap").is_loop(echo)
    assert not Masked("a hat, a scarf, the scarf, a pan").is_loop(echo)
    assert Masked("jobs on Broadway, off Broadway").is_loop("le Pont, le Pont, le Pont, etc.")
    assert not Masked("What is used is worn").is_loop("Was benutzt wurde, wurde alt, wurde, was")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Es war so, so, so, so, so schön", "Es war so schön"),
        ("Und dann und dann und dann und dann und dann kam er", "Und dann und dann kam er"),
        ("hahahahahahahahahaha", "Ha"),
        ("Sehr, sehr, sehr gut", "Sehr, sehr, sehr gut"),
        ("Es kostet 1000000000000", "Es kostet 1000000000000"),
    ],
)
def test_restored_writes_a_phrase_that_is_repeated_without_end_once(
    text: str, expected: str
) -> None:
    assert Masked("It was nice").restored(text) == expected


def test_restored_writes_a_word_once_that_occurs_three_times_in_a_row() -> None:
    stutter = "ein Mann, der der der Tat beschuldigt wird"
    assert Masked("a man").restored(stutter) == "ein Mann, der Tat beschuldigt wird"
    assert Masked("a tree").restored("wie z. B. B. B. Bäume") == "wie z. B. Bäume"
    assert Masked("no no no").restored("nein nein nein") == "nein nein nein"
    assert Masked("a man").restored("die, die die Tat sahen") == "die, die die Tat sahen"
