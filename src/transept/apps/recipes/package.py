"""The stage that stores the model with a card, ready for use: WORK/model.

The card names the texts with their licences and attributions. Its scores are those of the stored
weights, so the test sets are translated again.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from transept import config
from transept.api.card import CARD, README, Card, Result, Source
from transept.api.models import load
from transept.apps.recipes.recipe import RecipeText, fingerprint
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun, lines
from transept.apps.recipes.stage import Stage, Watchers
from transept.checkpoint import CONFIG, WEIGHTS, Bundle, tokenizers_in, write_directory
from transept.data.config import DataConfig
from transept.errors import CheckpointError, ConfigError
from transept.evaluation.conventions import chrf, sacre_bleu
from transept.experiment import Experiment
from transept.quantization import Precision, pack
from transept.runtime.storage import digest
from transept.training.config import CheckpointConfig

LICENCE: Final = "Apache-2.0"


class Package(Stage):
    """Store the averaged model in lower precision, with a model card."""

    name = "package"

    def inputs(self) -> Table:
        """The model, the test sets, and what the card contains."""
        run, recipe = self.run, self.run.recipe
        if run.results("train") is None:
            raise ConfigError(f"{run.directory}: nothing is trained yet; run `train` first")
        texts = [(text.name, text.licence, text.attribution) for text in recipe.texts]
        return {
            "weights": run.weights,
            "precision": recipe.package,
            "sources": run.hashes(run.sources),
            "references": run.hashes(run.references),
            "card": fingerprint(run.name, recipe.title, recipe.limits, texts, recipe.search),
        }

    def carry_out(self, watch: Watchers) -> Table:
        """Store the model, translate the test sets with it, and store it again with its card."""
        assert self._precision is not None
        average = Bundle.open(self.run.model)
        parts = parts_of(self.run, average, self._precision)
        with tempfile.TemporaryDirectory() as temporary:
            trial = Path(temporary) / self.run.package.name
            write_directory(trial, **parts)
            results = tuple(scores(self.run, trial, watch))
        card = card_of(self.run, average, self._precision, results)
        parts["texts"] |= {CARD: config.dump(card), README: card.markdown()}
        write_directory(self.run.package, **parts, replace=True)
        stored = self.run.package / WEIGHTS
        return {
            "weights": digest(stored),
            "bytes": stored.stat().st_size,
            "scores": [asdict(one) for one in results],
        }

    def summary(self, record: Table) -> str:
        """The directory, the precision and the size."""
        megabytes = record["results"]["bytes"] / 1e6
        return f"{self.run.package.name}/ in {record['inputs']['precision']}, {megabytes:,.1f} MB"

    def is_whole(self) -> bool:
        """Whether the model exists."""
        try:
            return Bundle.open(self.run.package).precision == self._precision
        except CheckpointError:
            return False

    @property
    def _precision(self) -> Precision | None:
        precision = self.run.recipe.package
        return None if precision == "none" else precision


def parts_of(run: RecipeRun, average: Bundle, precision: Precision) -> dict[str, Any]:
    """The arguments of `write_directory`, without paths of this machine and its time budget."""
    experiment = config.load(Experiment, average.directory / CONFIG)
    experiment = replace(experiment, data=DataConfig(), checkpoint=CheckpointConfig())
    return {
        "tensors": {WEIGHTS: pack(average.weights(), precision)},
        "texts": {CONFIG: config.dump(experiment)},
        "folders": tokenizers_in(average.directory),
        "about": {**average.about, "corpora": [text.name for text in run.recipe.texts]},
        "precision": precision,
    }


def scores(run: RecipeRun, model: Path, watch: Watchers) -> Iterator[Result]:
    """Yield the scores of a model on the test sets."""
    transducer = load(model, engine="native")
    search: dict[str, Any] = asdict(run.recipe.search)
    for test in run.recipe.tests:
        sources, references = lines(run.sources(test)), lines(run.references(test))
        found = transducer.translate(
            sources, split=False, watch=watch.translating(test.name), **search
        )
        texts = [one.text.replace("\n", " ") for one in found]
        for score in (sacre_bleu().measure(texts, references), chrf(texts, references)):
            yield Result(
                test=test.name,
                sentences=len(sources),
                name=score.convention.name,
                value=round(score.value, 2),
                signature=score.convention.signature,
            )


def card_of(
    run: RecipeRun, average: Bundle, precision: Precision, results: tuple[Result, ...]
) -> Card:
    """The card of a model."""
    recipe, prepared = run.recipe, run.results("prepare")
    trained = run.records.read("train")
    assert prepared is not None
    assert trained is not None
    return Card(
        title=recipe.title,
        source_language=recipe.source_language,
        target_language=recipe.target_language,
        licence=LICENCE,
        recipe=run.name,
        commit=trained["by"]["commit"] or "an unknown commit",
        steps=int(average.about["step"]),
        parameters=sum(weight.numel() for weight in average.weights().values()),
        precision=precision,
        data=tuple(_source(text, prepared["corpora"][text.name]) for text in recipe.texts),
        results=results,
        limits=recipe.limits or "Not known.",
    )


def _source(text: RecipeText, corpus: Table) -> Source:
    """The entry of a text, with the translator of one of its sides."""
    written = "target" if text.source is not None else "source"
    by = " and ".join(Path(name).stem for name in text.translator)
    return Source(
        name=f"{text.name} ({written} by {by})" if by else text.name,
        licence=text.licence,
        attribution=text.attribution,
        pairs=corpus["pairs"],
    )
