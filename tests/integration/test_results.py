"""The page of results says what the records say, and nothing else."""

import copy
import json
import lzma
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.integration.kitchen import Kitchen
from tests.integration.workshop import run

from transept import config
from transept.recipes import recipe
from transept.recipes.figure import Axis, draw
from transept.recipes.pages import SPLIT, Collection, page, pictures
from transept.recipes.stages.train import device_seconds

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def docs(kitchen: Kitchen, cooked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two runs and a comparison."""
    place = tmp_path_factory.mktemp("docs")
    (place / "results").mkdir()
    shutil.copytree(cooked, place / "one")
    for name in ("data", "vocabulary", "tests"):
        shutil.copytree(cooked / name, place / "two" / name)
    (place / "two" / "records").mkdir()
    shutil.copy(cooked / "records" / "prepare.json", place / "two" / "records")
    other = ("experiment.training.seed=2", "experiment.training.max_steps=20")
    (place / "two" / "recipe.toml").write_text(shown(kitchen, *other))
    assert kitchen.cook(place / "two", *other) == 0
    for name in ("one", "two"):
        shutil.copy(place / name / "record.json", place / "results" / f"{name}.json")
    output = place / "results" / "one-against-two.json"
    assert run("recipe", "compare", place / "one", place / "two", "--output", output) == 0
    assert run("recipe", "report", place / "results", "--output", place / "results.md") == 0
    return place


def shown(kitchen: Kitchen, *overrides: str) -> str:
    return config.dump(recipe.load(str(kitchen.recipe), overrides))


def test_every_score_on_the_page_is_in_a_record_and_the_other_way_round(docs: Path) -> None:
    text = (docs / "results.md").read_text()
    for name in ("one", "two"):
        record = json.loads((docs / "results" / f"{name}.json").read_bytes())
        section = text.partition(f"## {name}\n")[2].partition("\n- ")[0]
        shown = re.findall(r"^\| (\w+) \| (\d+) \| ([^|]+) \| ([\d.]+) \|", section, re.MULTILINE)
        recorded = [
            (test, str(report["sentences"]), score["convention"]["name"], f"{score['value']:.2f}")
            for test, report in record["stages"]["score"]["results"]["tests"].items()
            for score in (*report["systems"][0]["scores"], *report["perplexities"])
        ]
        assert shown == recorded
        trained = record["stages"]["train"]["results"]
        assert f"| {trained['step']} | {trained['target_tokens']:,} |" in text
        assert f"seed {record['recipe']['experiment']['training']['seed']};" in text
        assert record["stages"]["train"]["by"]["source"][:12] in text
        corpora = record["stages"]["prepare"]["results"]["corpora"]
        for trained_on in record["recipe"]["texts"]:
            assert corpora[trained_on["name"]]["hash"][:12] in text
    compared = json.loads((docs / "results" / "one-against-two.json").read_bytes())
    for test, found in compared["tests"].items():
        by_name = {one["convention"]["name"]: one for one in found["comparisons"]}
        plain, split = (by_name[which] for which in ("sacreBLEU", SPLIT))
        assert f"| {test} | {plain['difference']:+.2f} | " in text
        assert f"{plain['p_value']:.3f} | {split['difference']:+.2f} | " in text


def test_flops_by_the_papers_method_count_every_device(docs: Path) -> None:
    records = Collection.read(docs / "results")
    runs = copy.deepcopy(dict(records.runs))
    trained = runs["one"]["stages"]["train"]["results"]
    assert trained["device_seconds"] == trained["seconds"]  # one process, one device
    trained["device_seconds"] = 8 * trained["seconds"]
    shown = page(replace(records, runs=runs))
    assert f"| {8 * trained['seconds'] * trained['sustained_flops']:.2e} |" in shown


def test_device_seconds_add_the_ranks_of_each_sitting() -> None:
    first = {"seconds": 10.0, "device_seconds": device_seconds(None, {"seconds": 10.0, "ranks": 2})}
    assert first["device_seconds"] == 20.0
    assert device_seconds(first, {"seconds": 13.0, "ranks": 8}) == 44.0
    recorded_before = {"seconds": 10.0}
    assert device_seconds(recorded_before, {"seconds": 13.0, "ranks": 1}) == 13.0


def test_a_comparison_can_be_traced_to_the_runs_it_compares(docs: Path) -> None:
    compared = json.loads((docs / "results" / "one-against-two.json").read_bytes())
    runs = [json.loads((docs / "results" / f"{name}.json").read_bytes()) for name in ("one", "two")]
    for test, found in compared["tests"].items():
        scored = [one["stages"]["score"]["inputs"]["hypotheses"][test] for one in runs]
        assert found["hypotheses"] == scored
    text = (docs / "results.md").read_text()
    sides = []
    for name, one in zip(("one", "two"), runs, strict=True):
        minutes = one["stages"]["train"]["results"]["seconds"] / 60
        sides.append(f"[{name}](results/{name}.json), {minutes:.1f} min")
    assert text.index(sides[0]) < text.index(f", against transept ({sides[1]}")


def test_a_record_with_its_translations_is_compared_like_the_directory(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "kept.json"
    shutil.copy(docs / "results" / "one.json", record)
    words = ("recipe", "compare", record, docs / "two", "--output", tmp_path / "again.json")
    assert run(*words) == 2
    assert f"no translations lie beside it, in {tmp_path / 'kept'}" in capsys.readouterr().err
    (tmp_path / "kept").mkdir()
    for hypotheses in (docs / "one" / "hypotheses").iterdir():
        kept = tmp_path / "kept" / f"{hypotheses.name}.xz"
        kept.write_bytes(lzma.compress(hypotheses.read_bytes()))
    assert run(*words) == 0
    again = json.loads((tmp_path / "again.json").read_bytes())
    first = json.loads((docs / "results" / "one-against-two.json").read_bytes())
    assert again["tests"] == first["tests"]
    assert again["systems"][0]["name"] == "kept"
    capsys.readouterr()
    assert run("recipe", "compare", record, record, "--output", tmp_path / "no.json") == 2
    assert "a record has no references" in capsys.readouterr().err


def test_only_what_was_scored_is_compared(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = tmp_path / "two"
    shutil.copytree(docs / "two", two)
    words = ("recipe", "compare", docs / "one", two, "--output", tmp_path / "c.json")
    assert run(*words) == 0
    changed = two / "hypotheses" / "first.de"
    lines = changed.read_text().splitlines(keepends=True)
    changed.write_text("".join([*lines[1:], "anything else\n"]))
    assert run(*words) == 2
    assert f"{changed}: is not what {two / 'record.json'} scored" in told(capsys)


def test_a_comparison_of_nothing_is_refused(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = tmp_path / "two"
    shutil.copytree(docs / "two", two)
    for name in ("recipe.toml", "record.json"):
        text = (two / name).read_text()
        (two / name).write_text(text.replace('"first"', '"third"').replace('"second"', '"fourth"'))
    for path in [*two.glob("hypotheses/*"), *two.glob("tests/*")]:
        stem = {"first": "third", "second": "fourth"}[path.stem]
        path.rename(path.with_stem(stem))
    output = tmp_path / "c.json"
    assert run("recipe", "compare", docs / "one", two, "--output", output) == 2
    assert "have no test set of the same name" in told(capsys)
    assert not output.exists()


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_the_page_is_made_from_records_alone(docs: Path, tmp_path: Path) -> None:
    shutil.copytree(docs / "results", tmp_path / "results")
    assert run("recipe", "report", tmp_path / "results", "--output", tmp_path / "page.md") == 0
    assert (tmp_path / "page.md").read_text() == (docs / "results.md").read_text()


def test_the_curves_are_those_of_the_records(docs: Path) -> None:
    read = Collection.read(docs / "results")
    for picture in pictures(read):
        assert "one" in picture.title
        assert "two" in picture.title
        drawing = ElementTree.fromstring(picture.svg)
        lines = drawing.findall("{http://www.w3.org/2000/svg}polyline")
        assert [len(line.attrib["points"].split()) for line in lines] == [6, 2]
        heights = [float(point.split(",")[1]) for point in lines[0].attrib["points"].split()]
        assert heights == sorted(heights)  # a falling −log p goes down the page
    assert {path.name for path in (docs / "results").glob("*.svg")} == {
        "one-over-wall-time.svg",
        "one-over-target-tokens.svg",
    }


def test_runs_validated_on_other_tokens_have_a_picture_of_their_own(docs: Path) -> None:
    read = Collection.read(docs / "results")
    other = copy.deepcopy(read.runs["two"])
    other["stages"]["prepare"]["results"]["corpora"]["dev"]["hash"] = "of another vocabulary"
    apart = replace(read, runs={"one": read.runs["one"], "two": other})
    assert [picture.file for picture in pictures(apart)] == [
        "one-over-wall-time.svg",
        "one-over-target-tokens.svg",
        "two-over-wall-time.svg",
        "two-over-target-tokens.svg",
    ]
    assert all(picture.svg.count("<polyline") == 1 for picture in pictures(apart))


def test_translations_beside_a_record_are_linked_if_they_are_what_was_scored(
    docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    shutil.copytree(docs / "results", results)
    (results / "one").mkdir()
    hypotheses = min((docs / "one" / "hypotheses").iterdir())
    kept = results / "one" / f"{hypotheses.name}.xz"
    kept.write_bytes(lzma.compress(hypotheses.read_bytes()))
    words = ("recipe", "report", results, "--output", tmp_path / "page.md")
    assert run(*words) == 0
    link = f"What was scored: [{hypotheses.stem}](results/one/{kept.name})."
    assert (tmp_path / "page.md").read_text().count(link) == 1
    whole = kept.read_bytes()
    for wrong in (lzma.compress(hypotheses.read_bytes() + b"one more\n"), whole[:-9], b"plain"):
        kept.write_bytes(wrong)
        assert run(*words) == 3
        assert "is not what one.json scored" in capsys.readouterr().err


def test_mistakes(docs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records").mkdir()
    words = ["recipe", "report", tmp_path / "records", "--output", tmp_path / "page.md"]
    assert run(*words) == 3
    assert "holds no record of a run" in capsys.readouterr().err
    (tmp_path / "records" / "x.json").write_text("{}")
    assert run(*words) == 3
    assert "is no record of a recipe" in capsys.readouterr().err
    assert run(*words[:-1], docs / "page.md") == 2
    assert "must lie beside" in capsys.readouterr().err
    assert run("recipe", "compare", docs / "one", tmp_path, "--output", tmp_path / "c.json") == 2
    assert "run the recipe first" in capsys.readouterr().err


def test_the_committed_page_agrees_with_the_committed_records() -> None:
    read = Collection.read(DOCS / "results")
    drawn = {picture.file: picture.svg for picture in pictures(read)}
    found = (DOCS / "results").glob("*.svg")
    assert {path.name: path.read_text(encoding="utf-8") for path in found} == drawn
    assert (DOCS / "results.md").read_text(encoding="utf-8") == page(read)


def test_ticks_are_round_and_within_the_axis() -> None:
    axis = Axis.over([1.3, 8.9], 0, 100, zero=False)
    assert axis.ticks() == [2, 4, 6, 8]
    assert axis.place(1.3) == 0
    assert Axis.over([5.0], 0, 1, zero=False).ticks()
    assert axis.at_most(2.0).ticks() == [1.5, 2.0, 2.5, 3.0]
    assert axis.at_most(20.0) == axis
    assert "a &lt; b" in draw({"a < b": [(0, 1), (1, 0)]}, x_label="x", y_label="y")
