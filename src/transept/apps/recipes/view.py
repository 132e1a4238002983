"""The output of `transept recipe` and `transept demo`."""

import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

from transept.apps.recipes.recipe import Recipe
from transept.apps.recipes.sentences import Folder
from transept.wording import counted

if TYPE_CHECKING:
    from transept.apps.recipes.run import RecipeRun
    from transept.apps.recipes.stage import Done, Watchers
    from transept.apps.recipes.table import RowResult
    from transept.apps.visualize.terminal import WordAttention
    from transept.experiment import Experiment
    from transept.progress import Watch
    from transept.training.observers import Observer

PIPE_WIDTH = 100
PLAIN_SECONDS = 10.0
"""Seconds between two progress lines."""


class RecipeView:
    """Prints a line per stage, and the progress of long stages to standard error."""

    _name_width = 9

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = PIPE_WIDTH
        self._progress = Console(stderr=True, highlight=False)
        self._next = time.monotonic() + PLAIN_SECONDS

    def watchers(self) -> "Watchers":
        """Callbacks that print the progress of long stages."""
        from transept.apps.recipes.stage import Watchers

        return Watchers(
            downloading=partial(self._counting, "{:,.1f}", "MB", 1e-6),
            learning=lambda used, seen: self._print_progress(
                f"vocabulary from {used:,} lines", now=True
            ),
            preparing=partial(self._counting, "{:,.1f}", "MB", 1e-6),
            training=self._training,
            translating=partial(self._counting, "{:,.0f}", "sentences", 1),
        )

    def waiting(self, stage: str) -> AbstractContextManager[object]:
        """A context manager that shows the running stage."""
        return nullcontext()

    def translator(self, run: "RecipeRun") -> None:
        """Print which of several recipes runs."""
        self._print(Text(run.name, "bold"))

    def to_do(self, stage: str) -> None:
        """Print that a stage is not done."""
        self._line(stage, Text("to do", "dim"))

    def done(self, run: "RecipeRun", stage: str, done: "Done") -> None:
        """Print the summary of a stage."""
        self._stage(stage, done.what, None if done.already else done.seconds)

    def stopped(self) -> None:
        """Print how to resume a stopped run."""
        self._print("Stopped. Progress is saved; run the same command to resume.")

    def scores(self, run: "RecipeRun") -> None:
        """Print the scores of every test set by every convention."""
        results = run.results("score")
        assert results is not None
        for name, report in results["tests"].items():
            self._heading(f"{name}, {counted(report['sentences'], 'sentence')}")
            for row in (*report["systems"][0]["scores"], *report["perplexities"]):
                convention = row["convention"]
                line = f"  {convention['name']:32} {row['value']:6.2f}  "
                signature = (convention["signature"], "dim")
                self._print(Text.assemble(line, signature), soft_wrap=True)

    def row_run(self, name: str, done: bool) -> None:
        """Print the row and seed that runs, or that was done before."""
        self._print(Text.assemble((name, "bold"), ("  done before" if done else "", "dim")))

    def sweep(self, results: "Sequence[RowResult]") -> None:
        """Print the results of a sweep as a table, beside those of Table 3."""
        from transept.apps.recipes.table import PAPER, agreement, summarize

        rows = summarize(results)
        table = Table("row", box=None, padding=(0, 2, 0, 0))
        for title in ("seeds", "steps", "parameters", "PPL", "BLEU", "paper's PPL", "its BLEU"):
            table.add_column(title, justify="right")
        for row in rows:
            paper = [f"{value:.{2 - n}f}" for n, value in enumerate(PAPER.get(row.row, ()))]
            counts = (f"{number:,}" for number in (row.n_seeds, row.steps, row.parameters))
            table.add_row(row.row, *counts, str(row.perplexity), str(row.bleu), *paper)
        if rows:
            self._print()
            self._print(table)
        if (rho := agreement(rows)) is not None:
            self._print()
            self._print(f"Rank correlation of the perplexities with those of the paper: {rho:.2f}")

    def _training(self, experiment: "Experiment") -> "list[Observer]":
        from transept.cli.training_view import view_for

        return [view_for(self._progress, experiment.training.max_steps)]

    def _counting(self, form: str, unit: str, scale: float, name: str) -> "Watch":
        """Print the progress of one file or text, and the remaining time if the total is known."""
        from transept.cli.training_view import describe_left

        begin = time.monotonic()
        first: int | None = None

        def watch(done: int, total: int | None) -> None:
            nonlocal first
            first = done if first is None else first
            if total is None:
                self._print_progress(f"{name}: {form.format(scale * done)} {unit}")
                return
            elapsed = time.monotonic() - begin
            left = elapsed * (total - done) / (done - first) if done > first else inf
            counts = f"{form.format(scale * done)} of {form.format(scale * total)} {unit}"
            self._print_progress(f"{name}: {counts}, {describe_left(left)}")

        return watch

    def _stage(self, name: str, what: str, seconds: float | None) -> None:
        """Print a line about a stage. `seconds` is None if it was done before."""
        took = "done before" if seconds is None else f"{seconds:,.1f} s"
        self._line(name, Text.assemble(what, (f"  {took}", "dim")))

    def _line(self, name: str, what: Text) -> None:
        line = Table.grid(padding=(0, 1))
        line.add_column(width=self._name_width, style="bold")
        line.add_column()
        line.add_row(name, what)
        self._print(line)

    def _heading(self, text: str) -> None:
        self._print()
        self._print(Text(text, "bold"))

    def _print(self, what: Any = "", **options: Any) -> None:
        """Print. If the output is not a terminal, strip trailing spaces."""
        if self._console.is_terminal:
            self._console.print(what, **options)
            return
        with self._console.capture() as captured:
            self._console.print(what, **options)
        for line in captured.get().splitlines():
            self._console.out(line.rstrip())

    def _print_progress(self, line: str, *, now: bool = False) -> None:
        """Print a progress line, at most every few seconds."""
        if now or time.monotonic() >= self._next:
            self._progress.print(line, markup=False, soft_wrap=True)
            self._next = time.monotonic() + PLAIN_SECONDS


# --- the demo ----------------------------------------------------------------------------------

WIDTH = 80
"""The width of the attention map, independent of the terminal."""
TALLEST = 40
LONGEST = 160
"""The maximum number of characters shown of a sentence."""


class SampleTranslation(NamedTuple):
    """A sentence, its translation, and the reference."""

    source: str
    ours: str
    reference: str


class DemoView(RecipeView):
    """Prints a numbered line per stage, and then the results.

    Args:
        whole: The recipe with its full number of steps. A model with fewer gets a warning.
    """

    _name_width = 13

    def __init__(self, whole: Recipe) -> None:
        super().__init__()
        self._progress = self._console
        assert whole.sentences is not None
        languages = (whole.source_language, whole.target_language)
        folder = whole.sentences.folder
        self._folder = None if folder is None else Folder(folder, languages)
        self._all_steps = whole.experiment.training.max_steps
        self._n_lines = 0
        self._parts: dict[str, float] = {}
        self._status: Status | None = None
        self._print(Text(f"transept demo: {' → '.join(languages)}, from scratch", "bold"))
        self._print()

    def watchers(self) -> "Watchers":
        """Callbacks that measure the parts of the first stage and show the training."""
        from transept.apps.recipes.stage import Watchers

        return Watchers(part=self._part, training=self._training)

    def waiting(self, stage: str) -> AbstractContextManager[object]:
        """A status line on a terminal. The training shows its own progress."""
        if stage == "train" or not self._console.is_terminal:
            return nullcontext()
        self._status = self._console.status(stage)
        return self._status

    def done(self, run: "RecipeRun", stage: str, done: "Done") -> None:
        """Print the summary of a stage, the first in three lines, score and report not at all."""
        seconds = None if done.already else done.seconds
        if stage == "prepare":
            begun = [*self._parts.values(), time.monotonic()]
            for number, (part, what) in enumerate(self._prepared(run).items()):
                took = None if done.already else begun[number + 1] - begun[number]
                self._stage(part, what, took)
        elif stage == "train":
            self._stage("training", self._steps(run), seconds)
        elif stage in ("average", "decode"):
            name = "translation" if stage == "decode" else stage
            self._stage(name, done.what, seconds)

    def _prepared(self, run: "RecipeRun") -> dict[str, str]:
        """Descriptions of the parts of the first stage."""
        from transept.text.tokenizer import Tokenizer

        results = run.results("prepare")
        assert results is not None
        (train, dev), (test,) = results["corpora"].values(), results["tests"].values()
        origin = "a small grammar" if self._folder is None else self._folder.path
        text = f"{train['read']:,} sentence pairs of {origin}, dev {dev['read']:,}, "
        text += f"test {test['sentences']:,}"
        if self._folder is not None and (missing := self._folder.missing_splits()):
            text += f"; {' and '.join(missing)} held out from train"
        size = Tokenizer.load(run.vocabulary).vocab_size
        return {
            "text": text,
            "vocabulary": f"{size:,} subwords, shared by both languages",
            "ids": f"{train['target_tokens']:,} target tokens for training",
        }

    def _part(self, name: str) -> None:
        self._parts[name] = time.monotonic()
        if self._status is not None:
            self._status.update(name)

    def _stage(self, name: str, what: str, seconds: float | None) -> None:
        self._n_lines += 1
        super()._stage(f"{self._n_lines} {name}", what, seconds)

    # --- results ---------------------------------------------------------------------------------

    def warn_if_incomplete(self, run: "RecipeRun") -> None:
        """Warn if the model was trained for fewer steps than the recipe has."""
        if run.state["step"] < self._all_steps:
            self._print()
            warning = f"Incomplete: this model was trained for only {self._steps(run)}."
            self._print(Text(warning, "bold yellow"))
            self._print("Run the same command without --steps to train the remaining steps.")

    def samples(self, title: str, samples: Sequence[SampleTranslation]) -> None:
        """Print sentences with their translations. Print a reference only if it differs."""
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

    def results(self, run: "RecipeRun", samples: Sequence[SampleTranslation]) -> None:
        """Print the first score with its convention, and the rate of exact matches."""
        scored = run.results("score")
        assert scored is not None
        bleu = scored["tests"][run.recipe.tests[0].name]["systems"][0]["scores"][0]
        exact = sum(sample.ours == sample.reference for sample in samples) / len(samples)
        after = f", after {self._steps(run)}" if run.state["step"] < self._all_steps else ""
        self._heading(f"Scores on the {len(samples):,} test sentences{after}")
        name, signature = bleu["convention"]["name"], bleu["convention"]["signature"]
        value = (f"{bleu['value']:.2f}", "bold")
        self._print(Text.assemble(f"  {name} ", value, (f"  {signature}", "dim")))
        self._print(Text.assemble("  exact match ", (f"{100 * exact:.1f} %", "bold")))

    def attention(self, attention: "WordAttention") -> None:
        """Print the attention map of a sentence."""
        from transept.apps.visualize.terminal import draw_attention

        self._heading("Encoder-decoder attention (last layer, mean over its heads)")
        for line in draw_attention(attention, WIDTH - 2)[:TALLEST]:
            self._verbatim(f"  {line}")

    def print_output_files(self, run: "RecipeRun") -> None:
        """Print the output files."""
        self._heading("Output files")
        rows = {
            run.text: "train, dev and test, one sentence per line",
            run.vocabulary: "the vocabulary",
            run.training: "config.toml, metrics.jsonl, the last checkpoints",
            run.model: "the model: the average of the last checkpoints",
            run.hypotheses(run.recipe.tests[0]): "translations of the test set",
            run.record: "the scores, and a record of every stage",
        }
        width = max(len(str(path)) for path in rows) + 2
        for path, what in rows.items():
            self._verbatim(f"  {path!s:<{width}}{what}")

    def next_commands(self, run: "RecipeRun", sentence: str) -> None:
        """Print commands to try next, quoted for a shell."""
        self._heading("Try next")
        ours, reference = run.hypotheses(run.recipe.tests[0]), run.references(run.recipe.tests[0])
        deeper = run.directory.with_name(f"{run.directory.name}-deeper")
        for words in (
            ["translate", "--model", run.training, sentence],
            ["serve", "--model", run.training, "--run", run.training],
            ["evaluate", "--hypothesis", ours, "--reference", reference],
            ["info", run.training],
            ["train", run.training / "config.toml", "model.n_layers=3", "--output", deeper],
        ):
            self._verbatim(
                " ".join([f"  {own_command()}", *(_quoted(str(word)) for word in words)])
            )
        if self._folder is None:
            self._print("\nTo train on custom files, such as train.en and train.de in FOLDER:")
            self._verbatim(f"  {own_command()} demo --data FOLDER --output runs/mine")

    def _steps(self, run: "RecipeRun") -> str:
        """The number of steps, and the full number if it is larger."""
        step, wanted = run.state["step"], self._all_steps
        return f"{step:,} of {wanted:,} steps" if step < wanted else f"{step:,} steps"

    def _verbatim(self, line: str) -> None:
        self._print(line, markup=False, soft_wrap=True)


def _presentable(text: str) -> str:
    """Shorten text and replace unprintable characters: an untrained model may output anything."""
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
    return textwrap.shorten(printable, LONGEST, placeholder=" …")


def _quoted(word: str) -> str:
    """Quote a word for a shell, in double quotes if it contains an apostrophe."""
    return f'"{word}"' if "'" in word and not {*word} & {*'"$`\\!'} else shlex.quote(word)


def own_command() -> str:
    """The command that started this program, for the printed commands."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m transept"
    on_path = shutil.which(called.name)
    if on_path is not None and Path(on_path).samefile(called):
        return called.name
    return shlex.quote(str(called))
