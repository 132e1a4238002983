import pytest

from transept.apps.recipes import view
from transept.apps.recipes.view import RecipeView


@pytest.mark.parametrize(
    ("total", "line"),
    [
        (5_000, "tea: 2,000 of 5,000 sentences, -:--:-- left\n"),
        (None, "tea: 2,000 sentences\n"),
    ],
)
def test_progress_names_the_text_and_the_total_if_known(
    total: int | None,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(view, "PLAIN_SECONDS", -1.0)
    watch = RecipeView().watchers().translating("tea")
    watch(2_000, total)  # done before: the remaining time is not known yet
    assert capsys.readouterr().err == line


def test_remaining_time_follows_from_the_work_of_this_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(view, "PLAIN_SECONDS", -1.0)
    watch = RecipeView().watchers().preparing("tea")
    watch(40_000_000, 100_000_000)
    now += 90
    watch(70_000_000, 100_000_000)
    assert capsys.readouterr().err.endswith("tea: 70.0 of 100.0 MB, 0:01:30 left\n")
