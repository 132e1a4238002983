"""German that was written without umlauts and ß."""

import pytest

import transept
from transept.text.protection import Masked
from transept.text.spelling import respelt, with_sharp_s


@pytest.fixture(scope="module")
def model() -> transept.Transducer:
    return transept.load("de-en", engine="native", device="cpu")


def respelt_by(model: transept.Transducer, text: str) -> str:
    return respelt(text, model.source_tokenizer.encode)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Koennen Sie mir bitte helfen? Fuer heute reicht es.", "Können Sie"),
        ("Die Tuer ist offen.", "Die Tür ist offen."),
        ("Wir muessen ueber die Laender reden.", "Wir müssen über die Länder reden."),
        ("Fuer mich die groesste Strasse", "Für mich die größte Straße"),
    ],
)
def test_umlauts_are_restored(model: transept.Transducer, written: str, expected: str) -> None:
    assert expected in respelt_by(model, written)


@pytest.mark.parametrize(
    "text",
    [
        "Neue Steuern, neue Quellen, aktuelle Poesie.",
        "Michael und Manuel fuhren nach Israel.",
        "Das Feuer war teuer.",
        "Für Joe und Goethe.",  # it has an umlaut
        "Die Masse sah das Massaker auf der Passage nach der Preissenkung.",
    ],
)
def test_correct_german_is_not_respelt(model: transept.Transducer, text: str) -> None:
    assert respelt_by(model, text) == text


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("bitte tür schliessen", "bitte tür schließen"),
        ("grosse strasse, aussen heiss", "große straße, außen heiß"),
        ("Fussgänger, fusselig, Massnahmen", "Fußgänger, fusselig, Maßnahmen"),
        ("aussehen und aussenden, diesseits", "aussehen und aussenden, diesseits"),
        ("regelmässig viele Grüsse", "regelmäßig viele Grüße"),
        ("Grösse und äusserst", "Größe und äußerst"),
    ],
)
def test_sharp_s_is_restored_where_it_is_certain(written: str, expected: str) -> None:
    assert with_sharp_s(written) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [("GLATTE STRASSE", "ROAD"), ("Die Tuer ist offen.", "door")],
)
def test_respelt_words_are_translated(
    model: transept.Transducer, source: str, expected: str
) -> None:
    assert expected in model.translate(source).text


def test_second_attempt_at_numbers_is_respelt_too(model: transept.Transducer) -> None:
    text = "Die Tuer kostet fuer uns 330 Euro."
    read = Masked.of(text, languages=("de", "en"), encode=model.source_tokenizer.encode)
    again = Masked.of(
        text, languages=("de", "en"), encode=model.source_tokenizer.encode, all_figures=True
    )
    assert read.text == "Die Tür kostet für uns 330 Euro."
    assert again.text == read.text.replace("330", again.spans[0].mask)


def test_protected_text_keeps_its_spelling(model: transept.Transducer) -> None:
    found = model.translate("Die Tuer ist bei info@tueren-strasse.de oder `fuer`.").text
    assert "info@tueren-strasse.de" in found
    assert "`fuer`" in found
