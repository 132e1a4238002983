"""Store the model of a recipe in int8 or bf16, with a model card, as for the bundled models.

    python benchmarks/ship.py WORK --output src/transept/models/en-de [--to int8]

WORK is the work directory of `transept recipe run`, with its record.json. The card names the texts
with their licences and attributions. Its scores are those of the stored weights, so the test sets
are translated again. The name of the output directory is the name of the model.
"""

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transept
from transept import config
from transept.api.card import CARD, README, Card, Result, Source
from transept.apps.recipes.recipe import Recipe
from transept.apps.recipes.run import FILE, RECORD, RecipeRun, lines
from transept.checkpoint import CONFIG, WEIGHTS, Bundle, tokenizers_in, write_directory
from transept.data.config import DataConfig
from transept.evaluation.conventions import chrf, sacre_bleu
from transept.experiment import Experiment
from transept.quantization import pack
from transept.training.config import CheckpointConfig

LICENCE = "Apache-2.0"


def ship(work: Path, output: Path, precision: str = "int8") -> Card:
    if output.exists():
        raise FileExistsError(f"{output}: already exists; choose another --output")
    record = json.loads((work / RECORD).read_bytes())
    recipe = config.load(Recipe, work / FILE)
    run = RecipeRun(name=record["name"], recipe=recipe, directory=work)
    average = Bundle.open(run.model)
    parts = parts_of(run, average, precision)
    with tempfile.TemporaryDirectory() as temporary:
        trial = Path(temporary) / output.name
        write_directory(trial, **parts)
        results = tuple(scores(run, trial))
    card = card_of(run, record, average, precision, results)
    parts["texts"] |= {CARD: config.dump(card), README: card.markdown()}
    write_directory(output, **parts)
    return card


def parts_of(run: RecipeRun, average: Bundle, precision: str) -> dict[str, Any]:
    """The arguments of `write_directory`, without paths of this machine and its time budget."""
    experiment = config.load(Experiment, average.directory / CONFIG)
    experiment = dataclasses.replace(experiment, data=DataConfig(), checkpoint=CheckpointConfig())
    return {
        "tensors": {WEIGHTS: pack(average.weights(), precision)},
        "texts": {CONFIG: config.dump(experiment)},
        "folders": tokenizers_in(average.directory),
        "about": {**average.about, "corpora": [text.name for text in run.recipe.texts]},
        "precision": precision,
    }


def scores(run: RecipeRun, model: Path) -> Iterator[Result]:
    transducer = transept.load(model, engine="native")
    search = dataclasses.asdict(run.recipe.search)
    for test in run.recipe.tests:
        sources, references = lines(run.sources(test)), lines(run.references(test))
        found = transducer.translate(sources, split=False, too_long="split", **search)
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
    run: RecipeRun,
    record: dict[str, Any],
    average: Bundle,
    precision: str,
    results: tuple[Result, ...],
) -> Card:
    recipe, stages = run.recipe, record["stages"]
    corpora = stages["prepare"]["results"]["corpora"]
    return Card(
        title=recipe.title,
        source_language=recipe.source_language,
        target_language=recipe.target_language,
        licence=LICENCE,
        recipe=run.name,
        commit=stages["train"]["by"]["commit"] or "an unknown commit",
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", type=Path, help="the work directory of a recipe that has been run")
    parser.add_argument("--output", type=Path, required=True, help="the new model directory")
    parser.add_argument("--to", choices=["int8", "bf16"], default="int8", help="how to store it")
    options = parser.parse_args()
    print(ship(options.work, options.output, options.to).markdown())


if __name__ == "__main__":
    main()
