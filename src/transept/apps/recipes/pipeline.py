"""The stages after training (average, decode, score, report), and the list of all stages."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from transept import assembly, config
from transept.api.perplexity import measure_perplexities
from transept.apps.recipes.package import Package
from transept.apps.recipes.prepare import Prepare
from transept.apps.recipes.recipe import StageName, TestSet
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun, lines
from transept.apps.recipes.stage import Done, Stage, Watchers, do
from transept.apps.recipes.train import Train
from transept.apps.recipes.translate import TranslateStage
from transept.checkpoint import Bundle
from transept.errors import CheckpointError, ConfigError
from transept.evaluation.reading import language_of
from transept.evaluation.report import System, evaluate
from transept.runtime.storage import write_file
from transept.text.files import write_sentences
from transept.training.observers import METRICS, read_metrics
from transept.wording import counted

CURVES: Final = {"validation": ("nll",), "quality": ("bleu", "chrf")}
"""The values of the training curve, by the kind of their line in the log."""


class Average(Stage):
    """Average the last checkpoints (section 6.1)."""

    name = "average"

    def inputs(self) -> Table:
        """The steps of the averaged checkpoints."""
        steps = self._steps()
        if not steps:
            raise CheckpointError(
                f"{self.run.directory}: nothing is trained yet; run `train` first"
            )
        return {"steps": steps}

    def carry_out(self, watch: Watchers) -> Table:
        """Write the model, unless it exists."""
        if not self.is_whole():
            bundles = [self._checkpoint(step) for step in self._steps()]
            recipe = self.run.recipe
            # Translation depends on the languages: numbers are written as in the target language.
            languages = {
                "source_language": recipe.source_language,
                "target_language": recipe.target_language,
            }
            assembly.write_average(bundles, self.run.model, replace=True, about=languages)
        return {"weights": self.run.weights}

    def summary(self, record: Table) -> str:
        """The averaged steps, and whether they are fewer than in the recipe."""
        steps, averaging = record["inputs"]["steps"], self.run.recipe.average
        short = 0 if averaging.after else averaging.last - len(steps)
        return mean_of(steps) + (f"; {short} fewer than the recipe averages" if short else "")

    def is_whole(self) -> bool:
        """Whether the model exists."""
        return averaged_steps(self.run.model) == self._steps()

    def _steps(self) -> list[int]:
        """The last steps at regular intervals.

        An extended run may still have checkpoints from its earlier end.
        """
        averaging = self.run.recipe.average
        since = 60 * self.run.recipe.within(self.run.minutes).experiment.checkpoint.after_minutes
        steps = self.run.checkpoints.regular_steps(since)
        return [step for step in steps if step > averaging.after * steps[-1]][-averaging.last :]

    def _checkpoint(self, step: int) -> Bundle:
        """Open a checkpoint. A damaged one is not skipped: the average would differ."""
        checkpoints = self.run.checkpoints
        try:
            return checkpoints.open(step)
        except CheckpointError as error:
            raise CheckpointError(
                f"{error}. Restore it from a copy, or remove {checkpoints.path(step)} "
                "to average the others"
            ) from error


def mean_of(steps: Sequence[int]) -> str:
    """Describe an average of checkpoints."""
    if len(steps) == 1:
        return f"the weights at step {steps[0]:,}"
    return f"the mean of the weights at {len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"


def averaged_steps(model: Path) -> list[int] | None:
    """The steps that were averaged into a model. None if it is not an average."""
    try:
        steps: list[int] | None = Bundle.open(model).about.get("averaged_steps")
    except CheckpointError:
        return None
    return steps


class Decode(Stage):
    """Translate the test sets. A sentence in several test sets is translated once."""

    name = "decode"

    def inputs(self) -> Table:
        """The model, the sentences and the search options."""
        run = self.run
        return {
            "weights": run.weights,
            "sources": run.hashes(run.sources),
            "search": config.as_table(run.recipe.search),
        }

    def carry_out(self, watch: Watchers) -> Table:
        """Translate, and write the translations in the order of the test sets."""
        run = self.run
        sources = {test: lines(run.sources(test)) for test in run.recipe.tests}
        unique = list(dict.fromkeys(line for test in sources.values() for line in test))
        transducer = run.transducer()
        begin = time.monotonic()
        search: dict[str, Any] = asdict(run.recipe.search)
        # Each line of a test set is one sentence and gives one line of translation.
        found = transducer.translate(
            unique, split=False, watch=watch.translating("test sets"), **search
        )
        seconds = time.monotonic() - begin
        texts = [one.text.replace("\n", " ") for one in found]
        translations = dict(zip(unique, texts, strict=True))
        for test, sentences in sources.items():
            path = run.hypotheses(test)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_sentences(path, [translations[line] for line in sentences])
        engine = transducer.engine.name
        return {"search_seconds": seconds, "engine": engine, "sentences": len(unique)}

    def summary(self, record: Table) -> str:
        """The number of sentences and the beam size."""
        sentences, beam = record["results"]["sentences"], self.run.recipe.search.beam_size
        return f"{counted(sentences, 'test sentence')}, beam {beam}"

    def is_whole(self) -> bool:
        """Whether all translations exist."""
        return all(self.run.hypotheses(test).exists() for test in self.run.recipe.tests)


class ScoreStage(Stage):
    """Score the translations by every convention, and compute perplexities."""

    name = "score"

    def inputs(self) -> Table:
        """Translations, references, and the model, which perplexities depend on."""
        run = self.run
        if not all(run.hypotheses(test).exists() for test in run.recipe.tests):
            raise ConfigError(f"{run.directory}: nothing is translated yet; run `decode` first")
        return {
            "hypotheses": run.hashes(run.hypotheses),
            "references": run.hashes(run.references),
            "weights": run.weights,
        }

    def carry_out(self, watch: Watchers) -> Table:
        """A report for each test set."""
        return {"tests": {test.name: self._score(test) for test in self.run.recipe.tests}}

    def summary(self, record: Table) -> str:
        """The first score of the first test set."""
        test = self.run.recipe.tests[0].name
        score = record["results"]["tests"][test]["systems"][0]["scores"][0]
        return f"{test}: {score['convention']['name']} {score['value']:.2f}"

    def _score(self, test: TestSet) -> Table:
        run = self.run
        references = lines(run.references(test))
        system = System(run.name, lines(run.hypotheses(test)))
        scored = asdict(evaluate(system, references, language=language_of(run.references(test))))
        if test.perplexity:
            found = measure_perplexities(run.transducer(), lines(run.sources(test)), references)
            scored["perplexities"] = [asdict(one) for one in found]
        return scored


def report(run: RecipeRun) -> Done:
    """Write the records of the other stages and the training curve to one file."""
    begin = time.monotonic()
    found = {name: run.records.read(name) for name in run.recipe.stages if name in RECORDED}
    records = {name: record for name, record in found.items() if record is not None}
    missing = [name for name in found if name not in records]
    if missing:
        raise ConfigError(f"{run.directory}: {', '.join(missing)}: not done yet")
    record = {
        "kind": "run",
        "name": run.name,
        "system": run.system,
        "recipe": config.as_table(run.recipe),
        "minutes": records["train"]["inputs"]["minutes"],
        "stages": records,
        "curve": training_curve(run.training),
    }
    content = f"{json.dumps(record, indent=2)}\n".encode()
    already = run.record.exists() and run.record.read_bytes() == content
    if not already:
        write_file(run.record, content)
    return Done(str(run.record), already, time.monotonic() - begin)


def training_curve(training: Path) -> list[dict[str, float]]:
    """The points of the training curve: −log p, if finite, or BLEU and chrF, or all of them.

    Seconds count only training, over all commands.
    """
    points: dict[int, dict[str, float]] = {}
    latest: dict[str, Any] = {"seconds": 0.0, "target_tokens": 0}
    for line in read_metrics(training / METRICS):
        if line["kind"] == "step":
            latest = line
        measured = {key: line[key] for key in CURVES.get(line["kind"], ()) if line[key] is not None}
        if measured:
            spent = {key: latest[key] for key in ("seconds", "target_tokens")}
            points.setdefault(line["step"], {"step": line["step"], **spent}).update(measured)
    return list(points.values())


# --- all stages in order -------------------------------------------------------------------------


RECORDED: Final[Mapping[StageName, type[Stage]]] = {
    stage.name: stage
    for stage in (TranslateStage, Prepare, Train, Average, Decode, ScoreStage, Package)
}


def run_stage(run: RecipeRun, name: StageName, watch: Watchers) -> Done | None:
    """Run a stage. None if it was stopped; the same call then resumes."""
    return report(run) if name == "report" else do(RECORDED[name](run), watch)


def completed(run: RecipeRun) -> Iterator[tuple[StageName, Done]]:
    """The completed stages, up to the first incomplete one."""
    for name in filter(RECORDED.__contains__, run.recipe.stages):
        stage = RECORDED[name](run)
        if not stage.is_done():
            return
        yield name, stage.done(already=True)
