"""A recipe from text to a report: its stages in their order, and the rule by which each is done.

A stage is done when it has a record with the same inputs, and all that it makes is there. Otherwise
it is carried out, and recorded at its end. So each stage can be stopped, and is done only once. If
it is killed between its end and its record, the next call writes the record.
"""

import time
from collections.abc import Mapping
from typing import Final

from transept.recipes.recipe import StageName
from transept.recipes.records import Table
from transept.recipes.run import RecipeRun
from transept.recipes.stages.average import Average
from transept.recipes.stages.decode import Decode
from transept.recipes.stages.prepare import Prepare
from transept.recipes.stages.report import report
from transept.recipes.stages.score import Score
from transept.recipes.stages.stage import Stage
from transept.recipes.stages.train import Train
from transept.recipes.watchers import Watchers
from transept.recipes.work import Done

RECORDED: Final[Mapping[StageName, type[Stage]]] = {
    stage.name: stage for stage in (Prepare, Train, Average, Decode, Score)
}


def work_out(run: RecipeRun, name: StageName, watch: Watchers) -> Done | None:
    """Do a stage; None if it was stopped before its end, and the same call goes on."""
    return report(run) if name == "report" else do(RECORDED[name](run), watch)


def do(stage: Stage, watch: Watchers) -> Done | None:
    """Do a stage and write it down, unless that was done before."""
    begin = time.monotonic()
    inputs = stage.inputs()
    already = stage.is_recorded(inputs) and stage.is_whole()
    if not already:
        stage.fetch(watch)
        _carry_out(stage, inputs, watch)
        if not stage.is_whole():
            return None
    record = stage.run.records.read(stage.name)
    assert record is not None
    seconds = record["results"].get("seconds", time.monotonic() - begin)
    return Done(stage.summary(record), already, seconds)


def _carry_out(stage: Stage, inputs: Table, watch: Watchers) -> None:
    begin = time.monotonic()
    results = stage.carry_out(watch)
    seconds = None if "seconds" in results else time.monotonic() - begin
    stage.run.records.write(stage.name, inputs, results, seconds)
