"""The rule by which a stage is done, or not done again; of a stage that counts its calls."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.pipeline import RECORDED
from transept.apps.recipes.prepare import Prepare
from transept.apps.recipes.recipe import Recipe
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Done, Stage, Watchers, do
from transept.errors import DataError

DOCS = Path(__file__).resolve().parents[4] / "docs"


@dataclass(frozen=True)
class Count(Stage):
    """Writes its input to a file, as often as it is asked to."""

    name = "score"
    given: str = "a"
    results: Table = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def inputs(self) -> Table:
        return {"given": self.given, "pairs": (1, 2)}

    def fetch(self, watch: Watchers) -> None:
        self.calls.append("fetch")

    def carry_out(self, watch: Watchers) -> Table:
        self.calls.append("work")
        if self.given == "bad":
            raise DataError("bad: is no good")
        if self.given != "stopped":
            self.path.write_text(self.given)
        return {"made": self.given, **self.results}

    def summary(self, record: Table) -> str:
        return f"made {record['results']['made']} of {record['inputs']['given']}"

    def is_whole(self) -> bool:
        return self.path.exists()

    @property
    def path(self) -> Path:
        return self.run.directory / "made"


@pytest.fixture
def run(tmp_path: Path) -> RecipeRun:
    loaded = recipe.load("europarl-en-de-small")
    return RecipeRun(name="counted", recipe=loaded, directory=tmp_path)


def told(done: Done | None) -> tuple[str, bool]:
    assert done is not None
    return done.what, done.already


def test_a_stage_is_done_once(run: RecipeRun) -> None:
    stage = Count(run)
    assert told(do(stage, Watchers())) == ("made a of a", False)
    assert told(do(stage, Watchers())) == ("made a of a", True)
    assert stage.calls == ["fetch", "work"]


def test_it_is_done_again_of_other_inputs_and_where_what_it_made_is_gone(run: RecipeRun) -> None:
    do(Count(run), Watchers())
    assert told(do(Count(run, "b"), Watchers())) == ("made b of b", False)
    Count(run).path.unlink()
    assert told(do(Count(run, "b"), Watchers())) == ("made b of b", False)


def test_what_fails_is_not_written_down_and_what_is_stopped_goes_on(run: RecipeRun) -> None:
    with pytest.raises(DataError, match="is no good"):
        do(Count(run, "bad"), Watchers())
    assert run.results("score") is None
    assert do(Count(run, "stopped"), Watchers()) is None
    assert run.results("score") == {"made": "stopped"}
    assert told(do(Count(run), Watchers())) == ("made a of a", False)


def test_a_stage_with_a_clock_of_its_own_is_not_timed(run: RecipeRun) -> None:
    do(Count(run), Watchers())
    record = run.records.read("score")
    assert record is not None
    assert {"seconds", "finished"} < set(record)
    done = do(Count(run, "b", {"seconds": 77.0}), Watchers())
    assert done is not None
    assert done.seconds == 77.0
    record = run.records.read("score")
    assert record is not None
    assert list(record) == ["stage", "inputs", "results", "by"]


@pytest.mark.parametrize("path", sorted((DOCS / "results").glob("*.json")), ids=lambda p: p.stem)
def test_text_that_an_earlier_version_prepared_is_not_prepared_again(path: Path) -> None:
    record = json.loads(path.read_bytes())
    if "stages" in record:
        begun = config.structure(Recipe, record["recipe"])
        prepare = Prepare(RecipeRun(name="earlier", recipe=begun, directory=Path("work")))
        assert prepare.inputs() == record["stages"]["prepare"]["inputs"]


def test_every_stage_but_the_report_keeps_a_record() -> None:
    assert tuple(RECORDED) == recipe.STAGES[:-1]
