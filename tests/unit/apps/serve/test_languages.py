import pytest

from transept.apps.serve.messages import Detection
from transept.apps.serve.models import guess
from transept.text.languages import is_code, name_of

SAMPLES = {
    "en": "We went to the market and it was full of people.",
    "de": "Wir gingen auf den Markt, und er war voll von Menschen.",
    "fr": "Nous sommes allés au marché et il était plein de monde.",
    "es": "Fuimos al mercado y estaba lleno de gente, pero no había pan.",
    "it": "Siamo andati al mercato ed era pieno di gente, ma non c'è pane.",
    "nl": "Wij gingen naar de markt en het was er vol met mensen.",
    "ru": "Мы пошли на рынок.",
    "el": "Πήγαμε στην αγορά.",
    "ja": "市場に行きました。",
    "ko": "우리는 시장에 갔다.",
}


@pytest.mark.parametrize("code", SAMPLES)
def test_a_plain_sentence_is_recognised(code: str) -> None:
    best, *rest = guess(SAMPLES[code], list(SAMPLES))
    assert best.language == code
    assert 50 < best.confidence <= 100
    assert all(0 <= one.confidence <= best.confidence for one in rest)


def test_text_without_letters_has_no_confidence() -> None:
    for text in ("", "123 !?"):
        assert guess(text, ["en", "de"]) == [Detection("en", 0.0), Detection("de", 0.0)]


@pytest.mark.parametrize(
    ("text", "code"),
    [("Guten Morgen", "de"), ("Danke!", "de"), ("Good morning", "en"), ("Thanks!", "en")],
)
def test_two_words_are_enough(text: str, code: str) -> None:
    assert guess(text, ["en", "de"])[0].language == guess(text, ["de", "en"])[0].language == code


def test_text_in_unserved_language_has_low_confidence() -> None:
    (best,) = guess("Мы пошли на рынок.", ["en"])
    assert best.confidence < 1


def test_most_likely_other_language_is_appended_on_request() -> None:
    *served, other = guess(SAMPLES["fr"], ["en", "de"], others=True)
    assert served == guess(SAMPLES["fr"], ["en", "de"])
    assert other.language == "fr"
    assert other.confidence > 90
    assert len(guess("123", ["en", "de"], others=True)) == 2


def test_unknown_codes_and_aliases_are_handled() -> None:
    norwegian, other = guess("Jeg vil gjerne ha en kopp kaffe på torget.", ["gsw", "nb"])
    assert norwegian.language == "nb"
    assert norwegian.confidence > 50
    assert other == Detection("gsw", 0.0)


def test_codes_and_names() -> None:
    codes = ("en", "gsw", "pt_br", "cmn_Hans", "EN", "e", "english", "en_", "")
    assert [code for code in codes if is_code(code)] == ["en", "gsw", "pt_br", "cmn_Hans"]
    assert (name_of("de"), name_of("gsw")) == ("German", "gsw")
