"""From an averaged run to a model for a package: small, scored as it is stored, with a card."""

import dataclasses
import tempfile
from pathlib import Path
from typing import Any, Final

from transept import config
from transept.api.card import CARD, README, Card, Result, Source
from transept.api.models import load
from transept.api.transducer import Transducer
from transept.checkpoint import CONFIG, WEIGHTS, Bundle, tokenizers_in, write_directory
from transept.data.config import DataConfig
from transept.errors import CheckpointError
from transept.evaluation.conventions import chrf, sacre_bleu
from transept.evaluation.scores import Score
from transept.experiment import Experiment
from transept.quantization import Precision, pack
from transept.recipes.recipe import TestSet
from transept.recipes.records import commit
from transept.recipes.run import RecipeRun, lines
from transept.recipes.stages.decode import translate
from transept.recipes.watchers import Watchers
from transept.training.config import CheckpointConfig

LARGEST: Final = 12_000_000
"""The most bytes of a model in the package, all its files together."""
LICENCE: Final = "Apache-2.0"


def ship(run: RecipeRun, output: Path, precision: Precision, watch: Watchers) -> Card:
    """Write the averaged model of a run in less room, with a card that tells its scores.

    Args:
        run: A recipe that has been run as far as `average`.
        output: The new directory; its name will be the name of the model.
        precision: The precision in which the weights are stored.
        watch: Told how far the translation of the test sets is.
    """
    if output.exists():
        raise CheckpointError(f"{output}: is there already; choose another --output")
    average = Bundle.open(run.model)
    parts = _parts(run, average, precision)
    with tempfile.TemporaryDirectory() as temporary:
        trial = Path(temporary) / output.name
        write_directory(trial, **parts)
        results = _score(run, trial, watch)
    card = _card(run, average, precision, results)
    parts["texts"] |= {CARD: config.dump(card), README: card.markdown()}
    write_directory(output, **parts)
    return card


def size_of(directory: Path) -> int:
    """The bytes of all files of a model."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _parts(run: RecipeRun, average: Bundle, precision: Precision) -> dict[str, Any]:
    """What a bundle is written from, without any path of this machine."""
    experiment = config.load(Experiment, average.directory / CONFIG)
    # Whoever trains it further has text of their own, and no time budget of a recipe's.
    experiment = dataclasses.replace(experiment, data=DataConfig(), checkpoint=CheckpointConfig())
    about = {**average.about, "corpora": [text.name for text in run.recipe.texts]}
    return {
        "tensors": {WEIGHTS: pack(average.weights(), precision)},
        "texts": {CONFIG: config.dump(experiment)},
        "folders": tokenizers_in(average.directory),
        "about": about,
        "precision": precision,
    }


def _score(run: RecipeRun, model: Path, watch: Watchers) -> tuple[Result, ...]:
    transducer = load(model, engine="native")
    assert isinstance(transducer, Transducer)
    results: list[Result] = []
    for test in run.tests:
        sources, references = lines(run.sources(test)), lines(run.references(test))
        found = translate(transducer, sources, run.recipe, watch)
        scores = (sacre_bleu().measure(found, references), chrf(found, references))
        results += [_result(test, len(sources), score) for score in scores]
    return tuple(results)


def _result(test: TestSet, sentences: int, score: Score) -> Result:
    return Result(
        test=test.name,
        sentences=sentences,
        name=score.convention.name,
        value=round(score.value, 2),
        signature=score.convention.signature,
    )


def _card(
    run: RecipeRun, average: Bundle, precision: Precision, results: tuple[Result, ...]
) -> Card:
    prepared, trained = run.results("prepare"), run.records.read("train")
    assert prepared is not None
    corpora = prepared["corpora"]
    recipe = run.recipe
    return Card(
        title=recipe.title,
        source_language=recipe.source_language,
        target_language=recipe.target_language,
        licence=LICENCE,
        recipe=run.name,
        commit=(trained["by"]["commit"] if trained else commit()) or "an unknown commit",
        steps=int(average.about["step"]),
        parameters=sum(weight.numel() for weight in average.weights().values()),
        precision=precision,
        data=tuple(
            Source(
                name=text.name,
                licence=text.licence,
                attribution=text.attribution,
                pairs=corpora[text.name]["pairs"],
            )
            for text in recipe.texts
        ),
        results=results,
        limits=recipe.limits or "Not known.",
    )
