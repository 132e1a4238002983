"""Further attempts at sentences whose best translation is not complete."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

import transept
from transept.api.config import EngineName
from transept.api.guard import Choose, Guard
from transept.api.texts import Output, Unit
from transept.decoding.step import Hypothesis
from transept.text.protection import Masked
from transept.text.spans import MASKS
from transept.text.training import train_tokenizer

TEXT = "Please mail info@example.org or call %s before the end of the week."
TEXTS = {
    "en-de": TEXT,
    "de-en": "Bitte schreiben Sie info@example.org oder rufen Sie %s an.",
    "en-fr": TEXT,
}

LOSES_NUMBERS = {
    "en-de": ("They worked from March 3 to April 9.", ["3. März", "9. April"]),
    "de-en": ("Die Firma gab 330 Millionen Dollar für neue Schiffe aus.", ["330"]),
}
"""Sentences of which the models lose numbers."""


@pytest.fixture(scope="module")
def model() -> transept.Transducer:
    return transept.load("en-de")


def unit_of(text: str, model: transept.Transducer) -> Unit:
    ((unit,),) = model.units([text])
    return unit


class Attempts:
    """Succeeds if a unit has required tokens or terms."""

    def __init__(self) -> None:
        self.units: list[Unit] = []

    def __call__(self, units: Sequence[Unit], choose: Choose | None) -> list[tuple[Output, ...]]:
        self.units += units
        good = (Output("gut", -1.0, -1.0),)
        return [good if unit.required or unit.terms else () for unit in units]


def part_by_part(units: Sequence[Unit], choose: Choose | None) -> list[tuple[Output, ...]]:
    """All attempts fail but the last one, whose outputs are not chosen from."""
    if choose is not None:
        return [() for _ in units]
    return [(Output(f"<{part.text}>", -1.0, -1.0),) for part in units]


def test_numbers_and_dates_are_masked_before_any_other_attempt(model: transept.Transducer) -> None:
    guard = Guard(model.source_tokenizer, model.target_tokenizer)
    units = [unit_of(text, model) for text in ("He paid $25 on 3 May.", "He paid on Monday.")]
    attempt = Attempts()
    guard.complete(units, [(), ()], attempt)
    unit, *later = attempt.units
    assert later[:2] == units
    figures = MASKS[len(MASKS) // 2 :]
    assert unit.masked.text == f"He paid ${figures[0]} on {figures[1]}."
    assert [span.target for span in unit.masked.spans] == ["25", "3. Mai"]
    assert unit.ids == model.source_tokenizer.encode(unit.masked.text)


@pytest.mark.parametrize("name", ["en-de", "de-en"])
def test_translation_has_the_numbers_of_the_sentence(name: str) -> None:
    source, lost = LOSES_NUMBERS[name]
    model = transept.load(name, engine="native", device="cpu")
    assert not all(number in model.translate(source, raw=True).text for number in lost)
    assert all(number in model.translate(source).text for number in lost)


def test_marks_are_read_as_written_before_any_other_attempt(model: transept.Transducer) -> None:
    guard = Guard(model.source_tokenizer, model.target_tokenizer)
    masked = Masked.of("My “new” car (blue) is here.", languages=("en", "fr"))
    unit = Unit("My “new” car (blue) is here.", "", model.source_tokenizer.encode(masked.text))
    attempt = Attempts()
    guard.complete([unit._replace(masked=masked)], [()], attempt)
    assert masked.text == "My “ new” car ( blue) is here."
    assert attempt.units[0].masked.text == "My “new” car (blue) is here."
    assert attempt.units[0].ids == model.source_tokenizer.encode("My “new” car (blue) is here.")


def test_lost_spans_are_required_if_the_whole_beam_lacks_them(model: transept.Transducer) -> None:
    guard, unit = Guard(model.source_tokenizer, model.target_tokenizer), unit_of(TEXT, model)
    attempt = Attempts()
    (outputs,) = guard.complete([unit], [()], attempt)
    assert [one.text for one in outputs] == ["gut"]
    first, second = attempt.units
    assert first == unit
    assert second.terms == ()
    assert second.required == tuple((model.target_tokenizer.encode(m)[-1],) for m in MASKS[:2])


def test_model_without_masks_gets_the_lost_spans_as_terms() -> None:
    vocabulary = train_tokenizer([TEXT] * 50, vocab_size=300)
    guard = Guard(vocabulary, vocabulary)
    unit = Unit(TEXT, "", vocabulary.encode(TEXT), masked=Masked.of(TEXT, (), ("en", "de")))
    attempt = Attempts()
    guard.complete([unit], [()], attempt)
    assert attempt.units[-1].terms == (("info@example.org",), ("%s",))


def test_text_between_spans_is_translated_if_the_attempts_fail(
    model: transept.Transducer,
) -> None:
    guard, unit = Guard(model.source_tokenizer, model.target_tokenizer), unit_of(TEXT, model)
    ((one,),) = guard.complete([unit], [()], part_by_part)
    assert one.text == ("<Please mail> info@example.org <or call> %s <before the end of the week.>")
    assert one.score == -3.0


def test_sentence_without_spans_is_translated_in_parts(model: transept.Transducer) -> None:
    guard = Guard(model.source_tokenizer, model.target_tokenizer)
    text = "We came, and we saw the city, and then we went home again, because it was late."
    ((one,),) = guard.complete([unit_of(text, model)], [()], part_by_part)
    assert one.text.count("<") > 1
    assert one.text.replace("<", "").replace(">", "") == text


@pytest.mark.parametrize(("language", "n_capitals"), [("fr", 1), ("en", 1), ("de", 3)])
def test_parts_within_a_sentence_lose_their_capital_except_in_german(
    model: transept.Transducer, language: str, n_capitals: int
) -> None:
    text = "We came, and we saw the city, and then we went home again, because it was late."
    unit = unit_of(text, model)
    unit = unit._replace(masked=replace(unit.masked, languages=("en", language)))

    def decode(units: Sequence[Unit], choose: Choose | None) -> list[tuple[Output, ...]]:
        if choose is not None:
            return [() for _ in units]
        texts = [part.masked.restored(part.text.capitalize()) for part in units]
        return [(Output(each, -1.0, -1.0),) for each in texts]

    ((one,),) = Guard(model.source_tokenizer, model.target_tokenizer).complete([unit], [()], decode)
    assert one.text.casefold() == text.casefold()
    assert sum(map(str.isupper, one.text)) == n_capitals


@pytest.mark.parametrize(
    "engine", ["native", pytest.param("ctranslate2-int8", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "name", ["en-de", *(pytest.param(name, marks=pytest.mark.slow) for name in ("de-en", "en-fr"))]
)
def test_spans_are_kept_with_and_without_masks(name: str, engine: EngineName) -> None:
    if engine != "native":
        pytest.importorskip("ctranslate2")
    model = transept.load(name, engine=engine)
    found = model.translate([TEXTS[name], "Hallo {name}: https://example.com/a?b=1&c=2#top!"])
    assert all(span in found[0].text for span in ("info@example.org", "%s"))
    assert all(span in found[1].text for span in ("{name}", "https://example.com/a?b=1&c=2#top"))
    raw = model.translate(TEXTS[name], raw=True).text
    assert raw != found[0].text


@pytest.mark.slow
def test_last_draft_is_the_translation_of_text_with_spans(model: transept.Transducer) -> None:
    for text in (TEXT, "DO NOT ENTER", "Save changes", '- He said "yes" 🎉'):
        drafts = list(model.stream(text))
        whole = model.translate(text).text
        assert drafts[-1].text == whole
        for draft in drafts:
            assert whole.startswith(draft.text[: draft.stable]), "the stable part has changed"


@pytest.mark.parametrize(
    ("n_source", "n_output", "is_accepted"),
    [(30, 11, False), (30, 12, True), (30, 60, True), (11, 2, True), (12, 4, False)],
)
def test_output_much_shorter_than_its_sentence_is_not_accepted(
    n_source: int, n_output: int, is_accepted: bool
) -> None:
    unit = Unit("Yes", "", [5] * n_source, masked=Masked("Yes"))
    output = Hypothesis((6,) * n_output, -1.0, -1.0)
    assert unit.accepts(output, "Ja") == is_accepted
    # With terms there is no other attempt.
    assert unit._replace(terms=(("Ja",),)).accepts(output, "Ja")


def test_output_with_the_marks_of_the_sentence_is_preferred() -> None:
    text = 'He (the "boss") left.'
    unit = Unit(text, "", [5] * 8, masked=Masked(text))
    texts = ["Der Chef ging.", "Er ging (der Chef).", "Er (der „Chef“) ging.", "Er („Boss“) ging."]
    outputs = [(Hypothesis((number,) * 6, -1.0, -1.0), each) for number, each in enumerate(texts)]
    assert unit.complete(outputs) == unit.usable(outputs) == outputs[2:]
    assert unit.complete(outputs[:2]) == []
    assert unit.usable(outputs[:2]) == outputs[:2]
