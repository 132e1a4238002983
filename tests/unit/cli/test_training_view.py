"""Training progress on terminals and in logs."""

import io
import re

from rich.console import Console

from transept.cli.training_view import LiveView, PlainView, describe_event, describe_step

STEP = {
    "kind": "step",
    "loss": 6.2051,
    "nll": 5.9024,
    "lr": 5.14e-4,
    "tokens_per_second": 10_575.0,
    "mfu": 0.301,
}
START = {"kind": "start", "step": 0, "text": "runs/small: starting"}


def watch(width: int, *lines: dict[str, object], minutes: float | None = None) -> list[str]:
    """The lines that a terminal shows at the end."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    view = LiveView(console, 20_000, minutes)
    for line in lines:
        view.observe(line)
    view.close()
    written = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    return [line for line in re.split(r"[\r\n]+", written) if line]


def test_live_view_of_80_columns_shows_step_and_time_left() -> None:
    last = watch(80, START, STEP | {"step": 12_340}, minutes=600)[-1]
    assert "step 12340/20000 ━" in last
    assert last.endswith(" left")
    assert "loss 6.205  nll 5.902  lr 5.14e-04" in last
    assert "…" not in last


def test_live_view_of_100_columns_shows_all_metrics() -> None:
    last = watch(100, START, STEP | {"step": 12_340})[-1]
    assert describe_step(STEP) in last
    assert "MFU 30.1%" in last


def test_time_left_is_at_most_the_given_minutes() -> None:
    at_first = watch(80, START, minutes=4)[-1]
    assert "0:04:00 left" in at_first or "0:03:59 left" in at_first


def test_time_left_is_known_after_the_first_step() -> None:
    assert "-:--:-- left" in watch(80, START)[-1]
    assert "-:--:-- left" not in watch(80, START, STEP | {"step": 1})[-1]


def test_plain_view_shows_time_left() -> None:
    log = io.StringIO()
    view = PlainView(Console(file=log, width=80), 20_000, minutes=0.1)
    view.observe(START | {"step": 12_000})
    view.observe(STEP | {"step": 12_001})
    last = log.getvalue().splitlines()[-1]
    assert last.startswith(f"step 12,001/20,000  {describe_step(STEP)}  0:00:0")
    assert last.endswith(" left")


def test_live_view_shows_no_bar_before_the_start() -> None:
    assert watch(80) == []


def test_quality_is_one_line_and_three_per_sample() -> None:
    sample = {"source": "It rains.", "reference": "Es regnet.", "output": "Es\n\nregnet."}
    line = {"kind": "quality", "step": 4000, "bleu": 21.456, "chrf": 50.0, "sentences": 1,
            "seconds": 2.04, "best": True, "samples": [sample]}  # fmt: skip
    text = describe_event(line)
    assert text is not None
    assert text.splitlines() == [
        "step 4,000: BLEU 21.46, chrF 50.00 on 1 sentence in 2.0 s, the best so far",
        "  source     It rains.",
        "  reference  Es regnet.",
        "  output     Es regnet.",
    ]
    assert text in "\n".join(watch(80, START, line))
