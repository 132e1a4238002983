"""Two systems on the same test sets, sentence by sentence."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transept import config
from transept.errors import ConfigError
from transept.evaluation.reading import language_of
from transept.evaluation.report import System, evaluate
from transept.recipes.pages import Collection
from transept.recipes.recipe import Recipe
from transept.recipes.records import provenance
from transept.recipes.run import FILE, RECORD, RecipeRun, lines


@dataclass(frozen=True, slots=True)
class Contender:
    """A recipe that has been run to its end, with its translations by the test sets' names."""

    place: Path
    name: str
    system: str
    hypotheses: Mapping[str, Path]
    hypotheses_sha256: Mapping[str, str]
    references: Mapping[str, Path]
    """Empty if only the record is there."""
    references_sha256: Mapping[str, str]

    @classmethod
    def at(cls, place: Path) -> "Contender":
        """Read it from a work directory; or from a record with its translations beside it."""
        path = place / RECORD if place.is_dir() else place
        try:
            record: Mapping[str, Any] = json.loads(path.read_bytes())
            scored = record["stages"]["score"]["inputs"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path}: is no record that can be read; run the recipe first"
            ) from error
        found = _worked_out if place.is_dir() else _kept
        return found(place, record, scored)


def _worked_out(directory: Path, record: Mapping[str, Any], scored: Mapping[str, Any]) -> Contender:
    run = RecipeRun(
        name=record["name"],
        recipe=config.load(Recipe, directory / FILE),
        directory=directory,
        system=record["system"],
    )
    for kind, path in (("hypotheses", run.hypotheses), ("references", run.references)):
        there = run.hashes(path)
        changed = [
            path(test) for test in run.tests if scored[kind].get(test.name) != there[test.name]
        ]
        if changed:
            raise ConfigError(
                f"{changed[0]}: is not what {directory / RECORD} scored; run the recipe again"
            )
    return Contender(
        directory,
        run.name,
        run.system,
        {test.name: run.hypotheses(test) for test in run.tests},
        scored["hypotheses"],
        {test.name: run.references(test) for test in run.tests},
        scored["references"],
    )


def _kept(path: Path, record: Mapping[str, Any], scored: Mapping[str, Any]) -> Contender:
    translations = Collection(path.parent, {path.stem: record}, {}).translations(path.stem)
    if not translations:
        raise ConfigError(
            f"{path}: no translations lie beside it, in {path.with_suffix('')}; give the recipe's "
            "work directory"
        )
    return Contender(
        path,
        path.stem,
        record["system"],
        translations,
        scored["hypotheses"],
        {},
        scored["references"],
    )


def compare(first: Contender, second: Contender) -> dict[str, Any]:
    """Paired bootstraps of the first against the second, on the test sets that both have."""
    both = [test for test in first.hypotheses if test in second.hypotheses]
    if not both:
        ours, theirs = (", ".join(one.hypotheses) for one in (first, second))
        raise ConfigError(
            f"{first.place} ({ours}) and {second.place} ({theirs}) have no test set of the same "
            "name; compare recipes with the same test sets"
        )
    return {
        "kind": "comparison",
        "systems": [{"name": one.name, "system": one.system} for one in (first, second)],
        "tests": {test: _compared(test, first, second) for test in both},
        "by": provenance(),
    }


def _compared(test: str, first: Contender, second: Contender) -> dict[str, Any]:
    if first.references_sha256[test] != second.references_sha256[test]:
        raise ConfigError(
            f"{test}: {first.place} and {second.place} have different references; compare recipes "
            "with the same test sets"
        )
    references = first.references.get(test) or second.references.get(test)
    if references is None:
        raise ConfigError(
            f"{test}: a record has no references; give one of the two by its work directory"
        )
    ours, theirs = (System(one.system, lines(one.hypotheses[test])) for one in (first, second))
    language = language_of(references)
    report = evaluate(ours, lines(references), other=theirs, language=language)
    return {
        "sentences": report.sentences,
        "hypotheses": [one.hypotheses_sha256[test] for one in (first, second)],
        "comparisons": [asdict(one) for one in report.comparisons],
    }
