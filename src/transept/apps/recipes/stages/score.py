"""The fifth stage: what the translations are worth."""

from dataclasses import asdict

from transept.api.perplexity import measure_perplexities
from transept.apps.recipes.recipe import TestSet
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import lines
from transept.apps.recipes.stages.stage import Stage, Watchers
from transept.errors import ConfigError
from transept.evaluation.reading import language_of
from transept.evaluation.report import System, evaluate


class ScoreStage(Stage):
    """Score the translations by every convention, and the references by the model."""

    name = "score"

    def inputs(self) -> Table:
        """Translations and references; and the model, on which perplexities depend."""
        run = self.run
        if not all(run.hypotheses(test).exists() for test in run.tests):
            raise ConfigError(f"{run.directory}: nothing is translated yet; begin with `decode`")
        return {
            "hypotheses": run.hashes(run.hypotheses),
            "references": run.hashes(run.references),
            "weights": run.weights,
        }

    def carry_out(self, watch: Watchers) -> Table:
        """A report for each test set."""
        return {"tests": {test.name: self._score(test) for test in self.run.tests}}

    def summary(self, record: Table) -> str:
        """The first score of the first test set."""
        test = self.run.tests[0].name
        score = record["results"]["tests"][test]["systems"][0]["scores"][0]
        return f"{test}: {score['convention']['name']} {score['value']:.2f}"

    def _score(self, test: TestSet) -> Table:
        run = self.run
        references = lines(run.references(test))
        system = System(run.name, lines(run.hypotheses(test)))
        scored = asdict(evaluate(system, references, language=language_of(run.references(test))))
        if test.perplexity:
            transducer = run.work.transducer(run.recipe.average.last)
            found = measure_perplexities(transducer, lines(run.sources(test)), references)
            scored["perplexities"] = [asdict(one) for one in found]
        return scored
