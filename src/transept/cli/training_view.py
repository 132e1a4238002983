"""What a person sees of a run: a live line on a terminal, sparse plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from transept.training.observers import Line

PLAIN_SECONDS = 30.0
"""At most one line of progress in so many seconds where nobody watches live."""


def describe_step(line: Line) -> str:
    """The numbers of a step in one line."""
    return (
        f"loss {line['loss']:.3f}  nll {line['nll']:.3f}  lr {line['lr']:.2e}  "
        f"{line['tokens_per_second']:,.0f} tok/s  MFU {line['mfu']:.1%}"
    )


def describe_event(line: Line) -> str | None:
    """What else happens in one line, or None where it needs no words."""
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
        case "end":
            return f"step {line['step']:,}: {line['outcome']} after {line['seconds']:,.0f} s"
    return None


class PlainView:
    """For logs: the first step, then a line now and then."""

    def __init__(self, console: Console, max_steps: int) -> None:
        self._console = console
        self._max_steps = max_steps
        self._last = float("-inf")

    def observe(self, line: Line) -> None:
        """Write a line if it is time for one."""
        if line["kind"] == "step":
            now = time.monotonic()
            if now - self._last >= PLAIN_SECONDS or line["step"] == self._max_steps:
                self._last = now
                self._console.print(
                    f"step {line['step']:,}/{self._max_steps:,}  " + describe_step(line)
                )
        elif (text := describe_event(line)) is not None:
            self._console.print(text, soft_wrap=True, markup=False)

    def close(self) -> None:
        """Nothing is held back."""


class LiveView:
    """For terminals: a bar that moves, with the newest numbers; events scroll above it."""

    def __init__(self, console: Console, max_steps: int) -> None:
        self._progress = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=console,
            speed_estimate_period=120.0,
        )
        self._task = self._progress.add_task("", total=max_steps, numbers="")
        self._progress.start()

    def observe(self, line: Line) -> None:
        """Move the bar, or say what happened."""
        if line["kind"] == "step":
            self._progress.update(self._task, completed=line["step"], numbers=describe_step(line))
        elif (text := describe_event(line)) is not None:
            self._progress.console.print(text, soft_wrap=True, markup=False)

    def close(self) -> None:
        """Leave the last state of the bar on the screen."""
        self._progress.stop()


View = PlainView | LiveView


def view_for(console: Console, max_steps: int) -> View:
    """The view that suits where the output goes."""
    return (LiveView if console.is_terminal else PlainView)(console, max_steps)
