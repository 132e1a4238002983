"""Training progress: a live progress bar on a terminal, occasional plain lines in a log."""

import math
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.table import Column
from rich.text import Text

from transept.training.observers import Line
from transept.wording import counted

PLAIN_SECONDS = 30.0
"""The minimum time between two progress lines in a log."""


def describe_step(line: Line, width: int | None = None) -> str:
    """The metrics of a step in one line. The last ones are omitted if they do not fit."""
    numbers = ""
    for number in (
        f"loss {line['loss']:.3f}",
        f"nll {line['nll']:.3f}",
        f"lr {line['lr']:.2e}",
        f"{line['tokens_per_second']:,.0f} tok/s",
        f"MFU {line['mfu']:.1%}",
    ):
        longer = f"{numbers}  {number}" if numbers else number
        if width is not None and len(longer) > width:
            break
        numbers = longer
    return numbers


def describe_left(seconds: float) -> str:
    """The remaining time; infinite if unknown."""
    if seconds == math.inf:
        return "-:--:-- left"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02} left"


def describe_event(line: Line) -> str | None:
    """A message for any line that is not a step, or None if it has no message."""
    match line["kind"]:
        case "start":
            return str(line["text"])
        case "warning":
            return f"warning: {line['text']}"
        case "validation":
            best = ", the best so far" if line["best"] else ""
            return (
                f"step {line['step']:,}: validation loss {line['loss']:.4f}, "
                f"perplexity {line['perplexity']:.3f}{best}"
            )
        case "quality":
            return "\n".join(_describe_quality(line))
        case "end":
            return f"step {line['step']:,}: {line['outcome']} after {line['seconds']:,.0f} s"
    return None


def _describe_quality(line: Line) -> Iterator[str]:
    """The scores in one line, and each sample in three."""
    best = ", the best so far" if line["best"] else ""
    yield (
        f"step {line['step']:,}: BLEU {line['bleu']:.2f}, chrF {line['chrf']:.2f} on "
        f"{counted(line['sentences'], 'sentence')} in {line['seconds']:.1f} s{best}"
    )
    for sample in line["samples"]:
        for name, text in sample.items():
            yield f"  {name:11}{' '.join(text.split())}"


class PlainView:
    """For logs: the first step, then occasional lines."""

    def __init__(self, console: Console, max_steps: int, minutes: float | None) -> None:
        self._console = console
        self._max_steps = max_steps
        self._seconds = math.inf if minutes is None else 60 * minutes
        self._first, self._begun = 0, time.monotonic()
        self._last = -math.inf

    def observe(self, line: Line) -> None:
        """Print a line if one is due."""
        if line["kind"] == "step":
            now = time.monotonic()
            if now - self._last >= PLAIN_SECONDS or line["step"] == self._max_steps:
                self._last = now
                step = f"step {line['step']:,}/{self._max_steps:,}"
                left = describe_left(self._left(line["step"], now - self._begun))
                self._console.print(f"{step}  {describe_step(line)}  {left}", soft_wrap=True)
        elif (text := describe_event(line)) is not None:
            self._console.print(text, soft_wrap=True, markup=False)
        if line["kind"] == "start":
            self._first, self._begun = line["step"], time.monotonic()

    def _left(self, step: int, elapsed: float) -> float:
        """The remaining time at the average speed, at most until --minutes have passed."""
        by_steps = elapsed / (step - self._first) * (self._max_steps - step)
        return min(by_steps, max(0.0, self._seconds - elapsed))

    def close(self) -> None:
        """Do nothing: all lines have been written."""


class TimeLeft(ProgressColumn):
    """The remaining time at the recent speed, at most until --minutes have passed."""

    def __init__(self, minutes: float | None) -> None:
        super().__init__(Column(no_wrap=True))
        self._minutes = minutes

    def render(self, task: Task) -> Text:
        """The remaining time, known after the first step."""
        elapsed = task.elapsed or 0.0
        left = math.inf if task.time_remaining is None else task.time_remaining
        if left == math.inf and (done := task.completed - task.fields["first"]):
            left = elapsed / done * (task.remaining or 0)
        if self._minutes is not None:
            left = min(left, max(0.0, 60 * self._minutes - elapsed))
        return Text(describe_left(left))


class LiveView:
    """For terminals: a progress bar with the latest metrics. Events scroll above it."""

    def __init__(self, console: Console, max_steps: int, minutes: float | None) -> None:
        self._progress = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}"),
            TimeLeft(minutes),
            console=console,
            speed_estimate_period=120.0,
        )
        self._max_steps = max_steps
        self._task = self._progress.add_task("", start=False, total=max_steps, numbers="", first=0)

    def observe(self, line: Line) -> None:
        """Update the bar, or print an event."""
        if line["kind"] == "step":
            numbers = describe_step(line, self._room)
            self._progress.update(self._task, completed=line["step"], numbers=numbers)
        elif (text := describe_event(line)) is not None:
            self._progress.console.print(text, soft_wrap=True, markup=False)
        if line["kind"] == "start":
            # Not earlier, so that an error before the start is printed without a bar.
            self._progress.update(self._task, completed=line["step"], first=line["step"])
            self._progress.start_task(self._task)
            self._progress.start()

    @property
    def _room(self) -> int:
        """The width available for metrics, next to the steps, a short bar and the time left."""
        around = f"step {self._max_steps}/{self._max_steps} ━━━━━━━━  00:00:00 left"
        return self._progress.console.width - len(around)

    def close(self) -> None:
        """Stop updating. The bar stays on the screen."""
        self._progress.stop()


View = PlainView | LiveView


def view_for(console: Console, max_steps: int, minutes: float | None = None) -> View:
    """The view for this console. The run ends after `minutes` if given."""
    return (LiveView if console.is_terminal else PlainView)(console, max_steps, minutes)
