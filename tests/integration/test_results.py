"""The pages of results, which docs/making/results.py writes, agree with the records."""

import copy
import json
import lzma
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from making.records import SPLIT, Collection
from making.result_charts import curves, digest, draw
from making.results import compare, page, written
from making.results_log import log
from tests.integration.kitchen import Kitchen

from transept.apps.recipes.train import device_seconds

DOCS = Path(__file__).resolve().parents[2] / "docs"
DESCRIPTION = ".//{http://purl.org/dc/elements/1.1/}description"


@pytest.fixture(scope="module")
def records(kitchen: Kitchen, cooked: Path, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Two runs and a comparison."""
    place = tmp_path_factory.mktemp("docs")
    other = ("experiment.training.seed=2", "experiment.training.max_steps=20")
    assert kitchen.cook(place / "two", "--data", kitchen.data, *other) == 0
    results = place / "results"
    results.mkdir()
    for name, work in (("one", cooked), ("two", place / "two")):
        shutil.copy(work / "record.json", results / f"{name}.json")
    compared = json.dumps(compare(cooked, place / "two"))
    (results / "one-against-two.json").write_text(compared, encoding="utf-8")
    return Collection.read(results)


def test_committed_pages_agree_with_the_committed_records() -> None:
    for path, text in written(Collection.read(DOCS / "results")).items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run docs/making/results.py"


def test_committed_pictures_show_the_committed_records() -> None:
    shown = curves(Collection.read(DOCS / "results"))
    found = {path.name: ElementTree.parse(path) for path in (DOCS / "results").glob("*.svg")}
    described = {name: drawing.findtext(DESCRIPTION) for name, drawing in found.items()}
    assert described == {name: digest(points) for name, points in shown.items()}


def test_page_has_a_row_for_each_run(records: Collection) -> None:
    text = page(records)
    for name in records.runs:
        assert len(re.findall(rf"^\| \[.+\]\(results/{name}\.json\) \|", text, re.M)) == 1


def test_every_score_of_the_log_is_in_a_record_and_the_other_way_round(
    records: Collection,
) -> None:
    text = log(records)
    for name, record in records.runs.items():
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
    for test, found in records.comparisons["one-against-two"]["tests"].items():
        by_name = {one["convention"]["name"]: one for one in found["comparisons"]}
        plain, split = (by_name[which] for which in ("sacreBLEU", SPLIT))
        assert f"| {test} | {plain['difference']:+.2f} | " in text
        assert f"{plain['p_value']:.3f} | {split['difference']:+.2f} | " in text


def test_flops_by_the_papers_method_count_every_device(records: Collection) -> None:
    runs = copy.deepcopy(dict(records.runs))
    trained = runs["one"]["stages"]["train"]["results"]
    assert trained["device_seconds"] == trained["seconds"]  # one process, one device
    trained["device_seconds"] = 8 * trained["seconds"]
    shown = log(replace(records, runs=runs))
    assert f"| {8 * trained['seconds'] * trained['sustained_flops']:.2e} |" in shown


def test_device_seconds_add_the_ranks_of_each_command() -> None:
    first = {"seconds": 10.0, "device_seconds": device_seconds(None, {"seconds": 10.0, "ranks": 2})}
    assert first["device_seconds"] == 20.0
    assert device_seconds(first, {"seconds": 13.0, "ranks": 8}) == 44.0
    recorded_before = {"seconds": 10.0}
    assert device_seconds(recorded_before, {"seconds": 13.0, "ranks": 1}) == 13.0


def test_a_comparison_can_be_traced_to_the_runs_it_compares(records: Collection) -> None:
    for test, found in records.comparisons["one-against-two"]["tests"].items():
        assert found["hypotheses"] == [
            run["stages"]["score"]["inputs"]["hypotheses"][test] for run in records.runs.values()
        ]
    text = log(records)
    assert f"transept ({records.link('one')}, " in text
    assert f", against transept ({records.link('two')}, " in text


def test_pictures_show_the_curves_of_the_records(records: Collection, tmp_path: Path) -> None:
    ((name, shown),) = curves(records).items()
    assert (name, list(shown)) == ("one.svg", ["one", "two"])
    assert [point["step"] for point in shown["two"]] == [10, 20]
    draw(shown, tmp_path / name)
    drawing = (tmp_path / name).read_text(encoding="utf-8")
    assert ">one<" in drawing
    assert ElementTree.fromstring(drawing).findtext(DESCRIPTION) == digest(shown)
    draw(shown, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == drawing


def test_pictures_omit_points_without_a_loss(records: Collection) -> None:
    scored = copy.deepcopy(dict(records.runs["two"]))
    scored["curve"].append({"step": 99, "seconds": 1.0, "target_tokens": 1, "bleu": 1.0})
    ((_, shown),) = curves(replace(records, runs={"two": scored})).items()
    assert shown["two"] == records.runs["two"]["curve"]


def test_runs_validated_on_other_tokens_have_a_separate_picture(records: Collection) -> None:
    other = copy.deepcopy(dict(records.runs["two"]))
    other["stages"]["prepare"]["results"]["corpora"]["dev"]["hash"] = "of another vocabulary"
    apart = replace(records, runs={"one": records.runs["one"], "two": other})
    assert list(curves(apart)) == ["one.svg", "two.svg"]


def test_translations_beside_a_record_are_linked_if_they_are_the_scored_ones(
    records: Collection, cooked: Path, tmp_path: Path
) -> None:
    hypotheses = min((cooked / "hypotheses").iterdir())
    (tmp_path / "results" / "one").mkdir(parents=True)
    kept = tmp_path / "results" / "one" / f"{hypotheses.name}.xz"
    kept.write_bytes(lzma.compress(hypotheses.read_bytes()))
    read = replace(records, directory=tmp_path / "results")
    link = f"The scored translations: [{hypotheses.stem}](../results/one/{kept.name})."
    assert log(read).count(link) == 1
    kept.write_bytes(lzma.compress(hypotheses.read_bytes() + b"one more\n"))
    with pytest.raises(ValueError, match=r"is not what one\.json scored"):
        log(read)
