"""Lines that the demo prints: its estimate, and commands that can be read, and pasted."""

import shlex

import pytest

from transept.apps.recipes.demo.view import MEASURED, Estimate, _quoted, describe_duration


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("runs/demo/run", "runs/demo/run"),
        ("It rains.", "'It rains.'"),
        ("It isn't so.", '"It isn\'t so."'),
    ],
)
def test_a_sentence_is_quoted_as_a_person_would(word: str, shown: str) -> None:
    assert _quoted(word) == shown


@pytest.mark.parametrize("word", ["it's $5", "it's `x`", 'say "it\'s"', "it's \\n", "Isn't it!"])
def test_what_a_shell_would_read_otherwise_stays_what_it_is(word: str) -> None:
    assert shlex.split(_quoted(word)) == [word]
    assert not _quoted(word).startswith('"')


# --- how long it takes -------------------------------------------------------------------------


def estimates(monkeypatch: pytest.MonkeyPatch, *steps: int, of: int) -> list[str]:
    """Lines about a training in which each step takes two seconds."""
    shown: list[str] = []
    estimate = Estimate(shown.append, of)
    for step in steps:
        monkeypatch.setattr("time.monotonic", lambda step=step: 100.0 + 2 * step)
        estimate.observe({"kind": "step", "step": step})
        estimate.observe({"kind": "checkpoint", "step": step})
    return shown


def test_estimate_is_printed_once_after_the_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimates(monkeypatch, 1, MEASURED, of=2320) == []
    (line,) = estimates(monkeypatch, 1, 10, 20, 30, 40, of=2320)
    assert line.startswith("training takes about 76 minutes more")


def test_estimate_of_a_resumed_training_counts_from_its_first_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (line,) = estimates(monkeypatch, 2000, 2010, 2020, of=2320)
    assert line.startswith("training takes about 10 minutes more")


def test_estimate_is_not_printed_after_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimates(monkeypatch, 1, 10, 20, 30, of=30) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "about 1 second"),
        (59, "about 59 seconds"),
        (60, "about 1 minute"),
        (235, "about 4 minutes"),
        (90_000, "about 1,500 minutes"),
    ],
)
def test_duration_is_described_in_minutes_from_one_minute_on(seconds: float, words: str) -> None:
    assert describe_duration(seconds) == words
