"""Punctuation, quotation marks and capitals that follow the source."""

import pytest

from transept.text.surface import follow, in_capitals, sentence_case


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("Save changes", "Änderungen speichern.", "Änderungen speichern"),
        ("Is it?", "Ist es.", "Ist es?"),
        ("Note:", "Hinweis", "Hinweis:"),
        ("Liebe Anna,", "Dear Anna", "Dear Anna,"),
        ("Dear Anna,", "Liebe Anna.", "Liebe Anna,"),
        ("It rains.", "Es regnet", "Es regnet."),
        ("Oil, gas etc", "Öl, Gas usw.", "Öl, Gas usw."),
        ("(It rains.)", "(Es regnet.)", "(Es regnet.)"),
        ("雨です。", "It rains.", "It rains."),
        ("Good morning", "guten Morgen", "Guten Morgen"),
        ("good", "Gut", "Gut"),
        ("", "Gut.", "Gut."),
        ("The film «Home».", "Der Film \x84Home\x93.", "Der Film „Home“."),
        ("It costs 3 euros", "Es kostet 3 \x80\x81", "Es kostet 3 €"),
    ],
)
def test_follow_adapts_the_end_and_the_first_letter(
    source: str, output: str, expected: str
) -> None:
    assert follow(source, output) == expected


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ('He said "yes".', "Er sagte „ja.", "Er sagte „ja“."),
        # A quotation of several sentences is closed in another one, with the source's mark.
        ('"It is late.', "»Es ist spät.", '"Es ist spät.'),
        ('"We go home."', "„Wir gehen nach Hause.", "„Wir gehen nach Hause.“"),
        ("“We go home", "„Wir gehen nach Hause.“", "“Wir gehen nach Hause"),
        ("and then?”", "und dann?", "und dann?”"),
        ("None here", "„Hier nicht", "Hier nicht"),
        ('"A" and "B"', '„A" und „B“', "„A“ und „B“"),
        ('The "first" one', 'Der "erste" "', 'Der "erste"'),
        ("«Oui», dit-il.", "„Ja“, sagte er.", "„Ja“, sagte er."),
        ("Er sagt „nein“.", "He says ‘no’.", "He says “no”."),
        ("Er sagt „nein“.", "He doesn't say ‘no.", "He doesn't say ‘no."),
        ("Er sagt nein.", "He says ‘no’.", "He says ‘no’."),
        ("„Es ist spät.", "‘It's late.", "„It's late."),
        ("Das vergesse ich nie.“", "I never forget that.’", "I never forget that.“"),
        ("Wir gehen“, sagte er.", 'We go," he said.', "We go,“ he said."),
        ("Wir gehen“, sagte er.", "We go, he said.", "We go“, he said."),
        ("Er sagte: „Ja.", "He said: Yes.", "He said: „Yes."),
        ("Er sagte: „Ja.", "He said yes.", "He said yes."),
        ("„Ja.“", "‘Yes it's.”", "“Yes it's.”"),
        ("„Er sagte ‚nie‘“, rief ich.", "‘He said ‘no’,’ I cried.", "“He said ‘no’,” I cried."),
        ("„Er sagte ‚nie‘“, rief ich.", '"He said "no"," I said.', "\"He said 'no',\" I said."),
        ("“He said ‘no’,” I cried.", "„Er sagte „nie“, rief ich.", "„Er sagte ‚nie‘“, rief ich."),
        ("„Er sagte ‚nie‘“, rief ich.", "He said ‘no’, I cried.", "He said ‘no’, I cried."),
    ],
)
def test_follow_repairs_quotation_marks(source: str, output: str, expected: str) -> None:
    assert follow(source, output) == expected


def test_in_capitals_needs_two_words_or_a_long_one() -> None:
    assert [*map(in_capitals, ("DO NOT ENTER", "WARNING!", "NATO", "I", "Do NOT"))] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert sentence_case("(DO NOT ENTER)") == "(Do not enter)"
    assert sentence_case("SIND SIE SICHER?") == "Sind Sie sicher?"
