"""When a stage runs and when it is skipped, tested with a stage that counts its calls."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.pipeline import RECORDED, training_curve
from transept.apps.recipes.prepare import Prepare
from transept.apps.recipes.recipe import Recipe
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Done, Stage, Watchers, do
from transept.errors import DataError

DOCS = Path(__file__).resolve().parents[4] / "docs"


@dataclass(frozen=True)
class Count(Stage):
    """Writes its input to a file each time it runs."""

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
            raise DataError("bad: is invalid")
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


def summary_of(done: Done | None) -> tuple[str, bool]:
    assert done is not None
    return done.what, done.already


def test_completed_stage_is_skipped(run: RecipeRun) -> None:
    stage = Count(run)
    assert summary_of(do(stage, Watchers())) == ("made a of a", False)
    assert summary_of(do(stage, Watchers())) == ("made a of a", True)
    assert stage.calls == ["fetch", "work"]


def test_stage_reruns_when_inputs_change_or_output_is_missing(run: RecipeRun) -> None:
    do(Count(run), Watchers())
    assert summary_of(do(Count(run, "b"), Watchers())) == ("made b of b", False)
    Count(run).path.unlink()
    assert summary_of(do(Count(run, "b"), Watchers())) == ("made b of b", False)


def test_failed_stage_has_no_record_and_stopped_stage_resumes(run: RecipeRun) -> None:
    with pytest.raises(DataError, match="is invalid"):
        do(Count(run, "bad"), Watchers())
    assert run.results("score") is None
    assert do(Count(run, "stopped"), Watchers()) is None
    assert run.results("score") == {"made": "stopped"}
    assert summary_of(do(Count(run), Watchers())) == ("made a of a", False)


def test_stage_that_measures_its_time_is_not_timed(run: RecipeRun) -> None:
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
def test_text_prepared_by_an_earlier_version_is_reused(path: Path, tmp_path: Path) -> None:
    record = json.loads(path.read_bytes())
    if "stages" in record:
        begun = config.structure(Recipe, record["recipe"])
        run = RecipeRun(name="earlier", recipe=begun, directory=tmp_path)
        if "translate" in record["stages"]:
            run.records.keep("translate", record["stages"]["translate"])
        assert Prepare(run).inputs() == record["stages"]["prepare"]["inputs"]


def test_every_stage_except_report_has_a_record() -> None:
    assert tuple(RECORDED) == recipe.STAGES[:-1]


def test_training_curve_joins_loss_and_bleu_of_a_step(tmp_path: Path) -> None:
    spent = {"seconds": 1.5, "target_tokens": 700}
    lines: list[Table] = [
        {"kind": "step", "step": 2, "lr": 0.1, **spent},
        {"kind": "validation", "step": 2, "nll": 3.0},
        {"kind": "quality", "step": 2, "bleu": 10.0, "chrf": 30.0, "samples": []},
        {"kind": "quality", "step": 3, "bleu": 11.0, "chrf": 31.0, "samples": []},
        {"kind": "validation", "step": 4, "nll": None},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert training_curve(tmp_path) == [
        {"step": 2, **spent, "nll": 3.0, "bleu": 10.0, "chrf": 30.0},
        {"step": 3, **spent, "bleu": 11.0, "chrf": 31.0},
    ]
