"""A recipe from text to a report: its stages in order, and the rule by which a stage is done.

A stage is done if it has a record with the same inputs, and all of its output exists. Otherwise it
is carried out, and recorded at its end. So each stage can be stopped, and is not repeated. If it is
killed between its end and its record, the next call writes the record.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Final

from transept.apps.recipes.recipe import StageName
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stages.average import Average
from transept.apps.recipes.stages.decode import Decode
from transept.apps.recipes.stages.prepare import Prepare
from transept.apps.recipes.stages.report import report
from transept.apps.recipes.stages.score import ScoreStage
from transept.apps.recipes.stages.stage import Stage, Watchers
from transept.apps.recipes.stages.train import Train
from transept.apps.recipes.work import Done

RECORDED: Final[Mapping[StageName, type[Stage]]] = {
    stage.name: stage for stage in (Prepare, Train, Average, Decode, ScoreStage)
}


def work_out(run: RecipeRun, name: StageName, watch: Watchers) -> Done | None:
    """Run a stage; None if it was stopped before its end, and the same call resumes."""
    return report(run) if name == "report" else do(RECORDED[name](run), watch)


def do(stage: Stage, watch: Watchers) -> Done | None:
    """Carry out a stage and record it, unless it is done."""
    begin = time.monotonic()
    already = stage.is_done()
    if not already:
        stage.fetch(watch)
        _carry_out(stage, watch)
        if not stage.is_whole():
            return None
    return _done(stage, already, time.monotonic() - begin)


def completed(run: RecipeRun) -> Iterator[tuple[StageName, Done]]:
    """The stages that are done, up to the first that is not."""
    for name, kind in RECORDED.items():
        stage = kind(run)
        if not stage.is_done():
            return
        yield name, _done(stage, already=True)


def _carry_out(stage: Stage, watch: Watchers) -> None:
    begin = time.monotonic()
    inputs = stage.inputs()
    results = stage.carry_out(watch)
    seconds = None if "seconds" in results else time.monotonic() - begin
    stage.run.records.write(stage.name, inputs, results, seconds)


def _done(stage: Stage, already: bool, seconds: float = 0.0) -> Done:
    record = stage.run.records.read(stage.name)
    assert record is not None
    return Done(stage.summary(record), already, record["results"].get("seconds", seconds))
