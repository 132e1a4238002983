"""Corpora of one recipe for another with the same text, in the same or the opposite direction."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any, Final

from transept.data.shards import IDS, OFFSETS, Manifest, corpus_hash
from transept.errors import ConfigError
from transept.recipes.recipe import Recipe
from transept.recipes.records import Table
from transept.recipes.run import RecipeRun
from transept.recipes.stages.prepare import Prepare, prepared

PREPARED: Final = ("vocabulary", "data", "tests")


def take_prepared(run: RecipeRun, other: Path) -> None:
    """Copy the corpora, the vocabulary and the test sets of another work directory.

    Args:
        run: A recipe that was begun; what it has prepared itself stays.
        other: The work directory of a recipe with the same text, vocabulary and test sets; or of
            its mirror image, which translates the same text the other way round.
    """
    if run.records.read("prepare") is not None:
        return
    record = dataclasses.replace(run, directory=other).records.read("prepare")
    if record is None:
        raise ConfigError(f"{other}: nothing is prepared there; leave --prepared out")
    wanted = Prepare(run).inputs()
    mirrored = Prepare(dataclasses.replace(run, recipe=mirror(run.recipe))).inputs()
    if record["inputs"] not in (wanted, mirrored):
        raise ConfigError(
            f"{other}: was prepared from other text, with another vocabulary or other test sets "
            f"than {run.name} asks for; leave --prepared out"
        )
    for name in PREPARED:
        shutil.copytree(other / name, run.directory / name, dirs_exist_ok=True)
    if record["inputs"] != wanted:
        record = {**record, "inputs": wanted, "results": _turned_round(run, record["results"])}
    run.records.keep("prepare", record)


def mirror(recipe: Recipe) -> Recipe:
    """The recipe that translates in the opposite direction."""

    def turned(pair: Any) -> Any:
        return dataclasses.replace(pair, source=pair.target, target=pair.source)

    return dataclasses.replace(
        recipe,
        source_language=recipe.target_language,
        target_language=recipe.source_language,
        texts=tuple(map(turned, recipe.texts)),
        dev=tuple(map(turned, recipe.dev)),
        tests=tuple(map(turned, recipe.tests)),
    )


def _turned_round(run: RecipeRun, results: Table) -> Table:
    """Swap the sides of the copied corpora, and in the results. Test sets are named by language."""
    manifests = {name: turn_round(run.work.corpus(name)) for name in results["corpora"]}
    tests = {
        name: {
            **test,
            "source_sha256": test["target_sha256"],
            "target_sha256": test["source_sha256"],
        }
        for name, test in results["tests"].items()
    }
    return {**results, "tests": tests, **prepared(run, manifests)}


def turn_round(corpus: Path) -> Manifest:
    """Swap the sides of a corpus: its ids are then as if the text had been prepared that way."""
    manifest = Manifest.load(corpus)
    files = dict(manifest.files)
    for names in (IDS, OFFSETS):
        source, target = names["source"], names["target"]
        (corpus / source).rename(corpus / f"{source}.part")
        (corpus / target).rename(corpus / source)
        (corpus / f"{source}.part").rename(corpus / target)
        files[source], files[target] = manifest.files[target], manifest.files[source]
    settings = manifest.settings
    inputs = tuple(
        dataclasses.replace(each, paths=each.paths[::-1], bytes=each.bytes[::-1])
        for each in settings.inputs
    )
    turned = dataclasses.replace(
        manifest,
        hash=corpus_hash(files),
        source=manifest.target,
        target=manifest.source,
        settings=dataclasses.replace(settings, inputs=inputs),
        files=files,
    )
    turned.save(corpus)
    return turned
