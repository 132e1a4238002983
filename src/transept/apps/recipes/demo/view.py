"""What a person sees of a demo."""

import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from transept.apps.recipes.demo.plan import DemoPlan
    from transept.apps.recipes.demo.results import SampleTranslation
    from transept.apps.recipes.demo.stages import Demo
    from transept.apps.recipes.work import Done
    from transept.apps.visualize.terminal import WordAttention
    from transept.cli.training_view import View
    from transept.training.observers import Line

DOING = {
    "text": "writing sentences",
    "vocabulary": "learning a vocabulary",
    "ids": "turning words into numbers",
    "average": "averaging checkpoints",
    "translation": "translating the test set",
}
WIDTH = 80
"""Width of the attention map, whatever that of the terminal."""
TALLEST = 40
MEASURED = 20
"""Steps from which the time of all others is estimated."""
LONGEST = 160
"""Characters of a sentence that are shown."""


class DemoView:
    """Prints a line for each stage, and then the results."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._n_stages = 0

    def title(self, plan: "DemoPlan") -> None:
        """What is going to happen."""
        what = f"{plan.source_language} → {plan.target_language}"
        self._print(Text(f"transept demo: {what}, from nothing", "bold"))
        self._print()

    @contextmanager
    def waiting(self, doing: str) -> Iterator[None]:
        """A sign of life on a terminal."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status(doing):
            yield

    def stage(self, name: str, work: "Callable[[], Done]") -> None:
        """Do the work of a stage, and print a line about it."""
        begin = time.monotonic()
        with self.waiting(DOING[name]):
            done = work()
        self._stage(name, done.what, None if done.already else time.monotonic() - begin)

    def training(self, max_steps: int) -> "View":
        """A view of the training."""
        from transept.cli.training_view import view_for

        return view_for(self._console, max_steps)

    def estimate(self, max_steps: int) -> "Estimate":
        """An observer of the training that prints how long it will take."""
        return Estimate(self._print, max_steps)

    def trained(self, demo: "Demo", *, already: bool) -> None:
        """Print the line of the training, which is over."""
        seconds = demo.trained.seconds
        self._stage("training", _steps(demo), None if already else seconds)

    def _stage(self, name: str, what: str, seconds: float | None) -> None:
        self._n_stages += 1
        took = "done before" if seconds is None else f"{seconds:.1f} s"
        line = Table.grid(padding=(0, 1), expand=False)
        line.add_column(width=1, style="cyan")
        line.add_column(width=11, style="bold")
        line.add_column()
        line.add_row(str(self._n_stages), name, Text.assemble(what, (f"  {took}", "dim")))
        self._print(line)

    def stopped(self) -> None:
        """Report that a signal has stopped the demo, and how to resume it."""
        self._print("\nStopped. Everything so far is kept; the same command resumes from there.")

    # --- what came of it -------------------------------------------------------------------------

    def cut_short(self, demo: "Demo") -> None:
        """Warn of a model that was trained for fewer steps than it needs."""
        if demo.trained.step < demo.all_steps:
            self._print()
            warning = f"Cut short: this model was trained for {_steps(demo)} only."
            self._print(Text(warning, "bold yellow"))
            self._print("The same command without --steps trains the rest.")

    def samples(self, title: str, samples: "Sequence[SampleTranslation]") -> None:
        """Sentences with their translations; the reference only where it differs."""
        self._heading(title)
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=1)
        table.add_column(ratio=1)
        table.add_column(ratio=1)
        for sample in samples:
            right = sample.ours == sample.reference
            mark = Text("=", "green") if right else Text("≠", "red")
            table.add_row(mark, *(Text(_presentable(text)) for text in sample[:2]))
            if not right:
                table.add_row("", "", Text(f"({_presentable(sample.reference)})", "dim"))
        self._print(Padding(table, (0, 0, 0, 2)))

    def results(self, demo: "Demo") -> None:
        """Scores with the convention they are counted by."""
        results = demo.results()
        after = f", after {_steps(demo)}" if demo.trained.step < demo.all_steps else ""
        self._heading(f"Scores on the {results.sentences:,} test sentences{after}")
        bleu = results.bleu
        self._print(
            Text.assemble(
                f"  {bleu.convention.name} ",
                (f"{bleu.value:.2f}", "bold"),
                (f"  {bleu.convention.signature}", "dim"),
            ),
        )
        self._print(Text.assemble("  exact match ", (f"{100 * results.exact_match:.1f} %", "bold")))

    def attention(self, attention: "WordAttention") -> None:
        """Which words it looked at."""
        from transept.apps.visualize.terminal import draw_attention

        self._heading("Where the decoder looked for each word (last layer, mean of its heads)")
        for line in draw_attention(attention, WIDTH - 2)[:TALLEST]:
            self._print(f"  {line}", markup=False, soft_wrap=True)

    def places(self, demo: "Demo") -> None:
        """Where everything lies."""
        self._heading("Where everything lies")
        rows = {
            demo.text: "train, dev and test, a sentence a line",
            demo.work.vocabulary: "the vocabulary",
            demo.work.training: "config.toml, metrics.jsonl, the last checkpoints",
            demo.model: "the model: their average",
            demo.translation: "the test set, translated",
            demo.scores: "the scores",
        }
        width = max(len(str(path)) for path in rows) + 2
        for path, what in rows.items():
            self._print(f"  {path!s:<{width}}{what}", markup=False, soft_wrap=True)

    def next_commands(self, demo: "Demo", sentence: str) -> None:
        """What to try now: each line can be pasted."""
        self._heading("Try next")
        reference = demo.files("test")[1]
        deeper = demo.directory.with_name(f"{demo.directory.name}-deeper")
        for words in (
            ["translate", "--model", demo.work.training, sentence],
            ["evaluate", "--hypothesis", demo.translation, "--reference", reference],
            ["info", demo.work.training],
            ["train", demo.work.training / "config.toml", "model.n_layers=3", "--output", deeper],
        ):
            line = " ".join([own_command(), *(_quoted(str(word)) for word in words)])
            self._print(f"  {line}", markup=False, soft_wrap=True)
        if demo.plan.data is None:
            self._print(
                "\nThe same on files of your own, train.en and train.de say, in a folder:\n"
                f"  {own_command()} demo --data FOLDER --output runs/mine",
                markup=False,
                soft_wrap=True,
            )

    def _heading(self, text: str) -> None:
        self._print()
        self._print(Text(text, "bold"))

    def _print(self, what: Any = "", **options: Any) -> None:
        """Print; into a file, without the spaces that fill a line up."""
        if self._console.is_terminal:
            self._console.print(what, **options)
            return
        with self._console.capture() as captured:
            self._console.print(what, **options)
        for line in captured.get().splitlines():
            self._console.out(line.rstrip())


class Estimate:
    """Prints once how long a training will take, at the pace of its first steps."""

    def __init__(self, show: Callable[[str], None], max_steps: int) -> None:
        self._show, self._max_steps = show, max_steps
        self._begun: tuple[int, float] | None = None
        self._shown = False

    def observe(self, line: "Line") -> None:
        """Begin at the first step that is reported, which warms up, and end some steps later."""
        if self._shown or line["kind"] != "step":
            return
        step, now = line["step"], time.monotonic()
        first, begun = self._begun = self._begun or (step, now)
        if step - first >= MEASURED and step < self._max_steps:
            seconds = (now - begun) / (step - first) * (self._max_steps - step)
            self._show(
                f"training takes {describe_duration(seconds)} more; Ctrl-C stops it, and the same "
                "command resumes it"
            )
            self._shown = True

    def close(self) -> None:
        """Do nothing: the line has been written."""


def describe_duration(seconds: float) -> str:
    """An estimate in words."""
    number, unit = (seconds / 60, "minute") if seconds >= 60 else (seconds, "second")
    rounded = max(1, round(number))
    return f"about {rounded:,} {unit}{'s' if rounded > 1 else ''}"


def _steps(demo: "Demo") -> str:
    """How long a demo was trained; and for how long it should be, if that is longer."""
    step, wanted = demo.trained.step, demo.all_steps
    return f"{step:,} of {wanted:,} steps" if step < wanted else f"{step:,} steps"


def _presentable(text: str) -> str:
    """Cut long text, and replace what cannot be printed: an untrained model may write anything."""
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return textwrap.shorten(printable, LONGEST, placeholder=" …")


def _quoted(word: str) -> str:
    """Quote a word for a shell; one with an apostrophe in double quotes, as a person would."""
    return f'"{word}"' if "'" in word and not {*word} & {*'"$`\\!'} else shlex.quote(word)


def own_command() -> str:
    """How this program was called, so that the next call can be pasted."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m transept"
    on_path = shutil.which(called.name)
    if on_path is not None and Path(on_path).samefile(called):
        return called.name
    return shlex.quote(str(called))
