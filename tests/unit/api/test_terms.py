"""Required token sequences and glossaries, in every kind of translation."""

import re
from collections.abc import Callable

import pytest

import transept
from transept import SamplingConfig, Transducer
from transept.api.config import Options
from transept.api.texts import Output, Unit
from transept.errors import ConfigError
from transept.formats import ctranslate2_writer as export

WORDS = {
    "It rains today.": (),
    "The bank is open.": ("Geldhaus",),
    "He bought a car and a house.": ("Wagen", "Gebäude"),
    "Where is the dog?": (),
}


@pytest.fixture(scope="module")
def model() -> Transducer:
    return transept.load("en-de")


@pytest.fixture(scope="module")
def units(model: Transducer) -> list[Unit]:
    encode = model.target_tokenizer.encode
    return [
        unit._replace(required=tuple(tuple(encode(word)) for word in WORDS[unit.text]))
        for (unit,) in model.units([*WORDS])
    ]


def feed_of(units: list[Unit]) -> Callable[[int], list[Unit]]:
    waiting = [*units]
    return lambda n: [waiting.pop(0) for _ in range(min(n, len(waiting)))]


def assert_placed(outputs: list[tuple[Output, ...]]) -> None:
    for (best, *_), words in zip(outputs, WORDS.values(), strict=True):
        assert best.finished
        assert {*words} <= {*re.findall(r"\w+", best.text)}, best.text


@pytest.mark.parametrize("beam_size", [1, 4])
def test_output_has_required_words_and_other_units_are_unchanged(
    model: Transducer, units: list[Unit], beam_size: int
) -> None:
    outputs = model.translate_units(units, beam_size=beam_size)
    assert_placed(outputs)
    plain = [unit._replace(required=()) for unit in units]
    expected = model.translate_units(plain, beam_size=beam_size)
    for number in (0, 3):
        assert [one.text for one in outputs[number]] == [one.text for one in expected[number]]
    for number in (1, 2):
        assert outputs[number][0].text != expected[number][0].text


def test_feed_places_required_words(model: Transducer, units: list[Unit]) -> None:
    found = dict(one for done in model.translate_feed(feed_of(units)) for one in done)
    assert_placed([found[number] for number in range(len(units))])


@pytest.mark.skipif(not export.is_installed(), reason="CTranslate2 is not installed")
def test_ctranslate2_passes_units_with_required_words_to_native_engine(units: list[Unit]) -> None:
    model = transept.load("en-de", engine="ctranslate2-int8")
    assert_placed(model.translate_units(units))
    found = dict(one for done in model.translate_feed(feed_of(units)) for one in done)
    assert_placed([found[number] for number in range(len(units))])


def test_glossary_and_kept_words_are_in_translation(model: Transducer) -> None:
    text = "The bank is open. It often rains in Rome."
    options: Options = {"glossary": {"bank": "Kasse"}, "keep": ["Rome"]}
    result = model.translate(text, **options)
    assert {"Kasse", "Rome"} <= {*re.findall(r"\w+", result.text)}
    assert result.outputs[0].missing == ()
    *_, last = model.stream(text, **options)
    assert (last.text, last.missing) == (result.text, ())
    (units,) = model.units([text], **options)
    assert [unit.terms for unit in units] == [(("Kasse",),), (("Rome",),)]
    outputs = model.translate_units(units)
    assert " ".join(best.text for best, *_ in outputs) == result.text


def test_term_is_not_glued_to_next_piece(model: Transducer) -> None:
    """Without the rule, the search would continue the word: `Banken` contains `Bank`."""
    for term in ("Hand", "Bank", "und"):
        (best,) = model.translate("The banks are closed.", glossary={"banks": term}).outputs
        assert term.lower() in re.findall(r"\w+", best.text.lower()), best.text
        assert best.finished
        assert not best.missing


def test_term_after_quotation_mark_has_no_space(model: Transducer) -> None:
    for text in ('She called it a "bank".', '"Bank" is a word.'):
        (best,) = model.translate(text, glossary={"bank": "Bank"}).outputs
        assert not best.missing
        assert not re.search(r"[(„\"] Bank", best.text), best.text


def test_term_at_start_of_output_may_have_capital(model: Transducer) -> None:
    (best,) = model.translate("Often it rains.", glossary={"often": "oft"}).outputs
    assert best.text.startswith(("Oft ", "Es ")), best.text
    assert not best.missing


def test_missing_term_is_reported(model: Transducer) -> None:
    text = "The bank is open. The bank is closed."
    options: Options = {
        "glossary": {"bank": "Kreditinstitut"},
        "max_length_factor": 0,
        "max_length_extra": 3,
    }
    (best,) = model.translate(text, **options).outputs
    assert best.missing == ("Kreditinstitut", "Kreditinstitut")
    assert not best.finished
    *_, last = model.stream(text, **options)
    assert last.missing == best.missing


def test_glossary_without_match_does_not_change_translation(model: Transducer) -> None:
    text = "It rains today."
    assert model.translate(text, glossary={"bank": "Geldhaus"}) == model.translate(text)


def test_glossary_is_rejected_with_sampling_and_for_units(model: Transducer) -> None:
    sampling = SamplingConfig(seed=1)
    with pytest.raises(ConfigError, match="glossary: cannot be combined with sampling"):
        model.translate("It rains.", sampling=sampling, keep=["rains"])
    for key, value in {"glossary": {"a": "b"}, "keep": ["a"]}.items():
        with pytest.raises(ConfigError, match=f"{key}: is not supported for units"):
            model.translate_units([], **{key: value})  # type: ignore[arg-type]
