"""`transept recipe run --rows`: rows and seeds, shared text, resumption, and the table."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.kitchen import Kitchen, open_kitchen, stop_after
from tests.integration.workshop import run
from tests.random_networks import any_output_accepted

import transept

ROWS = {"C-ff4096": "d_ff = 128", "A-h1": "n_heads = 1"}
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
FEW = ["experiment.training.max_steps=6", "experiment.checkpoint.every_steps=3", "average.last=1"]


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Kitchen:
    return open_kitchen(tmp_path_factory.mktemp("sweep"))


@pytest.fixture
def unguarded() -> Iterator[None]:
    with any_output_accepted():
        yield


UNGUARDED = pytest.mark.usefixtures("unguarded")


@pytest.fixture(scope="module")
def rows(kitchen: Kitchen) -> Path:
    folder = kitchen.data.parent / "rows"
    folder.mkdir()
    for name, change in ROWS.items():
        text = f'extends = "../missing.toml"\n[model]\n{change}\n'
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def swept(kitchen: Kitchen, rows: Path, work: Path, *words: object) -> int:
    command = ["recipe", "run", kitchen.recipe, *FEW, "--rows", rows, "--data", kitchen.data]
    return run(*command, "--work", work, *words)


@UNGUARDED
def test_every_row_is_trained_with_every_seed_on_the_same_text(
    kitchen: Kitchen, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun, work = tmp_path / "begun", tmp_path / "work"
    assert swept(kitchen, rows / "C-ff4096.toml", begun, "--seeds", 1) == 0
    assert not (begun / "A-h1").exists()
    assert swept(kitchen, rows / "A-h1.toml", begun, "--seeds", 1) == 0
    first = (begun / "C-ff4096/1/record.json").read_bytes()
    copy_sweep(begun, work)
    capsys.readouterr()
    assert swept(kitchen, rows, work, "--seeds", 2, "--dry-run") == 0
    previewed = capsys.readouterr().out
    assert "base, seed 1  done before\n" in previewed
    assert "C-ff4096, seed 2\n" in previewed
    assert swept(kitchen, rows, work, "--seeds", 2) == 0
    shown = capsys.readouterr().out
    assert (work / "C-ff4096/1/record.json").read_bytes() == first
    results = json.loads((work / "sweep.json").read_bytes())["results"]
    names = ["base", "A-h1", "C-ff4096"]
    assert [(one["row"], one["seed"]) for one in results] == [
        (name, seed) for seed in (1, 2) for name in names
    ]
    by_name = {(one["row"], one["seed"]): one for one in results}
    assert by_name["C-ff4096", 1]["parameters"] > by_name["base", 1]["parameters"]
    assert by_name["A-h1", 1]["parameters"] == by_name["base", 1]["parameters"]
    assert len({one["perplexity"] for one in results}) == 6
    assert {one["steps"] for one in results} == {6}
    lines = [line.split() for line in shown.splitlines()]
    assert [line[0] for line in lines if line[1:3] == ["2", "6"]] == names
    # The text was prepared once, and only models remain.
    assert {*work.glob("*/*/data")} == {
        work / name / f"{seed}/data" for name in names for seed in (1, 2)
    }
    assert all(path.samefile(work / "prepared/data") for path in work.glob("*/*/data"))
    assert not [*work.glob("*/*/run/checkpoints/*")]
    assert all(transept.load(work / name / "2") for name in names)
    # Both sweeps together are one record.
    record = tmp_path / "table3.json"
    sweeps = [str(each / "sweep.json") for each in (begun, work)]
    command = [sys.executable, str(BENCHMARKS / "table3.py"), *sweeps, "--json", str(record)]
    subprocess.run(command, check=True)
    together = json.loads(record.read_bytes())["results"]
    assert together == sorted(results, key=lambda one: (names.index(one["row"]), one["seed"]))
    assert all(one["evaluation_seconds"] > 0 for one in together)
    assert len({one["corpora"] for one in together}) == 1


def copy_sweep(begun: Path, work: Path) -> None:
    """Copy the files that a sweep needs to continue on another machine."""
    shutil.copytree(begun / "prepared", work / "prepared")
    for record in begun.glob("*/*/record.json"):
        place = work / record.parent.relative_to(begun)
        place.mkdir(parents=True)
        for path in (record, record.with_name("recipe.toml")):
            shutil.copy(path, place)


@pytest.mark.slow
@UNGUARDED
def test_row_equals_a_recipe_that_is_run_with_the_same_values(
    kitchen: Kitchen, rows: Path, tmp_path: Path
) -> None:
    assert swept(kitchen, rows, tmp_path / "work", "--seeds", 1) == 0
    alone = tmp_path / "alone"
    assert kitchen.cook(alone, *FEW, "experiment.model.d_ff=128", "--data", kitchen.data) == 0
    model = "run/average-1/weights.safetensors"
    assert (alone / model).read_bytes() == (tmp_path / "work/C-ff4096/1" / model).read_bytes()


@UNGUARDED
def test_rows_train_on_one_device(
    kitchen: Kitchen, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in ranks.items():
        monkeypatch.setenv(name, value)
    assert swept(kitchen, rows, tmp_path / "work") == 2
    assert "--rows trains one model at a time on one device" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


def test_wrong_rows_are_rejected(
    kitchen: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert swept(kitchen, tmp_path, tmp_path / "work") == 2
    message = "is neither a .toml file nor a folder with .toml files, each of which is a row"
    assert message in " ".join(capsys.readouterr().err.split())
    (tmp_path / "large.toml").write_text("[model]\nvocab_size = 400\n", encoding="utf-8")
    assert swept(kitchen, tmp_path, tmp_path / "work") == 2
    message = "large: has model.vocab_size = 400, but all rows share a vocabulary of 300"
    assert message in " ".join(capsys.readouterr().err.split())
    (tmp_path / "large.toml").write_text("[model]\nn_haeds = 4\n", encoding="utf-8")
    assert swept(kitchen, tmp_path, tmp_path / "work") == 2
    assert "row large: " in (error := capsys.readouterr().err)
    assert "did you mean 'n_heads'?" in error
    (tmp_path / "large.toml").unlink()
    (tmp_path / "wide.toml").write_text("[model]\nd_ff = 128\n", encoding="utf-8")
    assert swept(kitchen, tmp_path, tmp_path / "work", "--only", "train") == 2
    assert "--rows cannot be combined" in capsys.readouterr().err
    assert swept(kitchen, tmp_path, tmp_path / "work", "tests=[]") == 2
    assert "none of them has perplexity = true" in capsys.readouterr().err


@pytest.mark.slow
def test_stopped_sweep_resumes_where_it_stopped(
    kitchen: Kitchen, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, whole = tmp_path / "work", tmp_path / "whole"
    words = ["recipe", "run", kitchen.recipe, "--rows", rows, "--data", kitchen.data, "--seeds", 1]
    stop_after(work / "A-h1/1/run", 20, [*words, "--work", work])
    assert (work / "base/1/record.json").exists()
    assert not (work / "A-h1/1/record.json").exists()
    assert run(*words, "--work", work) == 0
    shown = capsys.readouterr().out
    assert "base, seed 1  done before\nA-h1, seed 1\ntrain" in shown
    assert run(*words, "--work", whole) == 0
    (stopped, unstopped) = (
        [
            one | {"seconds": 0, "evaluation_seconds": 0}
            for one in json.loads((each / "sweep.json").read_bytes())["results"]
        ]
        for each in (work, whole)
    )
    assert stopped == unstopped
