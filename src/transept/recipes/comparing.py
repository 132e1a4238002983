"""Two systems on the same test sets, sentence by sentence."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transept import config
from transept.errors import ConfigError
from transept.evaluation.reading import language_of
from transept.evaluation.report import System, evaluate
from transept.recipes.recipe import Recipe
from transept.recipes.records import provenance
from transept.recipes.run import FILE, RECORD, RecipeRun, lines
from transept.runtime.storage import digest


def reopen(directory: Path) -> RecipeRun:
    """A recipe that was worked out to its end, in its directory."""
    try:
        record: Mapping[str, Any] = json.loads((directory / RECORD).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{directory}: has no {RECORD} that can be read; work the recipe out first"
        ) from error
    return RecipeRun(
        name=record["name"],
        recipe=config.load(Recipe, directory / FILE),
        directory=directory,
        minutes=record["minutes"],
        system=record["system"],
    )


def compare(first: RecipeRun, second: RecipeRun) -> dict[str, Any]:
    """Paired bootstraps of the first against the second, on the test sets that both have."""
    theirs = {test.name: test for test in second.tests}
    tests: dict[str, Any] = {}
    for test in first.tests:
        if test.name not in theirs:
            continue
        path = first.references(test)
        other = theirs[test.name]
        if digest(path) != digest(second.references(other)):
            raise ConfigError(f"{test.name}: {first.directory} and {second.directory} differ in it")
        files = (first.hypotheses(test), second.hypotheses(other))
        systems = [
            System(run.system, lines(file))
            for run, file in zip((first, second), files, strict=True)
        ]
        report = evaluate(systems[0], lines(path), other=systems[1], language=language_of(path))
        tests[test.name] = {
            "sentences": report.sentences,
            "hypotheses": [digest(file) for file in files],
            "comparisons": [asdict(one) for one in report.comparisons],
        }
    return {
        "kind": "comparison",
        "systems": [{"name": run.name, "system": run.system} for run in (first, second)],
        "tests": tests,
        "by": provenance(),
    }
