"""What a terminal shows of a training: how far it is, and how long it will take."""

import io
import re

from rich.console import Console

from transept.cli.training_view import LiveView, PlainView, describe_step

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
    """The lines that are left on a terminal at the end."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    view = LiveView(console, 20_000, minutes)
    for line in lines:
        view.observe(line)
    view.close()
    written = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    return [line for line in re.split(r"[\r\n]+", written) if line]


def test_80_columns_show_the_step_and_the_time_left_whole() -> None:
    last = watch(80, START, STEP | {"step": 12_340}, minutes=600)[-1]
    assert "step 12340/20000 ━" in last
    assert last.endswith(" left")
    assert "loss 6.205  nll 5.902  lr 5.14e-04" in last
    assert "…" not in last


def test_a_wider_terminal_shows_every_number() -> None:
    last = watch(100, START, STEP | {"step": 12_340})[-1]
    assert describe_step(STEP) in last
    assert "MFU 30.1%" in last


def test_the_time_left_is_no_more_than_the_minutes_given() -> None:
    at_first = watch(80, START, minutes=4)[-1]
    assert "0:04:00 left" in at_first or "0:03:59 left" in at_first


def test_the_first_step_tells_how_long_it_will_take() -> None:
    assert "-:--:-- left" in watch(80, START)[-1]
    assert "-:--:-- left" not in watch(80, START, STEP | {"step": 1})[-1]


def test_a_log_tells_the_time_left_too() -> None:
    log = io.StringIO()
    view = PlainView(Console(file=log, width=80), 20_000, minutes=0.1)
    view.observe(START | {"step": 12_000})
    view.observe(STEP | {"step": 12_001})
    last = log.getvalue().splitlines()[-1]
    assert last.startswith(f"step 12,001/20,000  {describe_step(STEP)}  0:00:0")
    assert last.endswith(" left")


def test_what_is_refused_before_the_start_leaves_no_bar() -> None:
    assert watch(80) == []
