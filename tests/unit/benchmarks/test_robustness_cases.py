"""The cases of `benchmarks/robustness` are complete, and each of their checks can fail."""

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def cases() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("robustness.cases")


def case(cases: Any, source: str, **checks: Any) -> Any:
    return cases.Case(id="x", group="x", direction="en-de", source=source, **checks)


def failed(cases: Any, source: str, output: str, **checks: Any) -> list[str]:
    results = cases.checked(case(cases, source, **checks), output)
    return [name for name, passed in results.items() if not passed]


def test_file_has_cases_of_every_class_in_both_directions(cases: Any) -> None:
    loaded = cases.load()
    assert len({one.id for one in loaded}) == len(loaded) >= 360
    found = Counter((one.group, one.direction) for one in loaded)
    assert min(found.values()) >= 6
    groups = {one.group for one in loaded}
    assert found.keys() == {
        (group, direction) for group in groups for direction in cases.DIRECTIONS
    }


def test_protected_strings_are_in_their_source(cases: Any) -> None:
    for one in cases.load():
        assert all(text in one.source for text in one.keeps or ()), one.id
        assert one.source.startswith(one.first or ""), one.id
        assert (one.last or "") in one.source, one.id
        assert one.equals in (None, one.source), one.id


def test_source_passes_the_checks_of_form(cases: Any) -> None:
    """A source keeps what it has, so that a case cannot demand the impossible."""
    words = {"any_of", "translated"}
    for one in cases.load():
        results = cases.checked(one, one.source)
        assert not [name for name, ok in results.items() if not ok and name not in words], one.id


@pytest.mark.parametrize(
    ("check", "source", "good", "bad"),
    [
        ({"keeps": ["{x}"]}, "Save {x}", "{x} sichern", "x sichern"),
        ({"keeps": ["%d"]}, "%d of %d", "%d von %d", "%d von"),
        ({"keeps": ["@bob"]}, "Ask @bob", "Frag @bob!", "Frag @bobby"),
        ({"keeps": ["4711"]}, "Code 4711", "Code 4711", "Code 47112"),
        ({"keeps": ["<0>"]}, "<0>here", "<0>hier", "hier"),
        ({"keeps": ["{a}", "{b}"], "order": True}, "{a} {b}", "{a} – {b}", "{b} – {a}"),
        ({"first": "- "}, "- milk", "- Milch", "– Milch"),
        ({"last": "🎉"}, "Hi 🎉", "Hallo 🎉.", "🎉 Hallo"),
        ({"equals": "..."}, "...", "...", "…"),
        ({"numbers": True}, "1,250 people", "1.250 Leute", "1.520 Leute"),
        ({"any_of": [["halb vier", "15:30"]]}, "3:30", "Um 15:30.", "Um 5:30."),
        ({"any_of": [["3:30"]]}, "3:30", "Um 3:30 Uhr", "Um 13:30 Uhr"),
        ({"any_of": [["a", "b"], ["c"]]}, "x", "B und C", "B und A"),
        ({"ends": "source"}, "Save", "Sichern", "Sichern."),
        ({"quotes": "source"}, 'He said "no".', "Er sagte „nein“.", "Er sagte „nein."),
        ({"quotes": "source"}, '"I know.', "„Ich weiß.", "„Ich weiß.“"),
        ({"quotes": "source"}, 'He said "no".', "Er sagte „nein“.", 'Er sagte „nein".'),
        ({"brackets": "source"}, "a (b)", "a (b)", "a b)"),
        ({"caps": True}, "STOP", "HALT", "Halt"),
        ({"translated": ["ENTER"]}, "NO ENTER", "NEIN", "NO ENTER"),
        ({"max_ratio": 2.0}, "abc", "abcdef", "abcdefg"),
    ],
)
def test_check_accepts_good_and_rejects_bad_output(
    cases: Any, check: dict[str, Any], source: str, good: str, bad: str
) -> None:
    assert failed(cases, source, good, **check) == []
    assert failed(cases, source, bad, **check) == [[*check][-1]]


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("Hallo \ufffd", "characters"),
        ("Hallo Hallo Hallo", "loops"),
        ("Hallo\n", "lines"),
        (" ", "empty"),
    ],
)
def test_every_output_is_checked(cases: Any, output: str, name: str) -> None:
    assert failed(cases, "Hello", output) == [name]


def test_html_has_the_checks_of_the_text(cases: Any) -> None:
    one = case(cases, "a < b\nSave {x} here", keeps=["{x}"])
    ((flat, sent),) = cases.in_html([one])
    assert sent == "<p>a &lt; b\n<b>Save</b> {x} here</p>"
    assert flat.source == "a < b Save {x} here"
    text, results = cases.checked_html(flat, sent, "<p>a &lt; b <b>Sichern</b> {x} hier</p>")
    assert text == "a < b Sichern {x} hier"
    assert all(results.values())
    _, results = cases.checked_html(flat, sent, "<p>a &lt; b Sichern {x} hier</p>")
    assert [name for name, passed in results.items() if not passed] == ["markup"]
