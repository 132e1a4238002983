"""`benchmarks/table3.py`: the record of Table 3, its page and its figure."""

import importlib
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from making.chapters import read_cells
from making.pictures import inlined, is_chart

from transept.apps.recipes import recipe
from transept.apps.recipes.table import PAPER, RowResult, summarize
from transept.training.config import ScheduleConfig

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def benchmarks() -> Any:
    """The modules of `benchmarks` that are tested here, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        names = ("table3", "tables", "figures")
        return SimpleNamespace(**{name: importlib.import_module(name) for name in names})


def result(row: str, seed: int, perplexity: float, **others: Any) -> dict[str, Any]:
    device = "cuda:0: NVIDIA H200"
    one = RowResult(
        row, seed, 4000, 52_300_000, perplexity, 30 - perplexity, 150.0, 30.0, device, "abc", "123"
    )
    return asdict(one) | others


def sweep(*results: dict[str, Any]) -> dict[str, Any]:
    return {"recipe": "table3", "overrides": [], "results": list(results)}


# Every row with two seeds has a variance of 0.02.
FOUR_ROWS = sweep(
    result("base", 1, 10.0), result("base", 2, 10.2),
    result("A-h1", 1, 11.0), result("A-h1", 2, 11.2),
    result("C-N2", 1, 9.1), result("C-N2", 2, 8.9, commit="def"),
    result("D-drop0", 1, 10.3),
)  # fmt: skip
MARGIN = 3.182 * (0.02 / 2) ** 0.5
"""Half of an interval of two seeds: the variance has three degrees of freedom."""


def cells(page: str, line: int) -> list[str]:
    rows = [row for row in page.replace("\xa0", " ").splitlines() if row.startswith("|")]
    return [cell.strip() for cell in rows[line].removeprefix("|").removesuffix("|").split("|")]


def test_page_has_the_rows_of_the_record_beside_those_of_the_paper(benchmarks: Any) -> None:
    page = benchmarks.table3.page(FOUR_ROWS)
    base = "N = 6, d_model = 512, d_ff = 2048, h = 8, d_k = d_v = 64, P_drop = 0.1, ε_ls = 0.1"
    scores = [f"10.10 ± {MARGIN:.2f}", "4.92", f"19.90 ± {MARGIN:.2f}", "25.8", "52.3", "65", "2"]
    assert cells(page, 2) == ["base", base, *scores]
    assert cells(page, 3)[:2] == ["A", "h = 1, d_k = d_v = 512"]
    changes = ["A", "h = 4, d_k = d_v = 128"]
    assert cells(page, 4) == [*changes, "not run", "5.00", "", "25.5", "", "65", ""]
    assert [cells(page, line)[1] for line in (7, 9, 12, 16, 18, 20, 21)] == [
        "d_k = 16", "N = 2", "d_model = 256, d_k = d_v = 32", "P_drop = 0", "ε_ls = 0",
        "learned positions", "d_model = 1024, d_ff = 4096, h = 16, P_drop = 0.3",
    ]  # fmt: skip
    single = MARGIN * 2**0.5
    assert cells(page, 16)[2::2] == [
        f"10.30 ± {single:.2f}", f"19.70 ± {single:.2f}", "52.3", "1"
    ]  # fmt: skip


def test_page_states_agreement_cost_and_large_differences(benchmarks: Any) -> None:
    page = benchmarks.table3.page(FOUR_ROWS)
    # The paper orders the four rows base, A-h1, D-drop0, C-N2. Ours are C-N2, base, D-drop0, A-h1.
    assert "with the paper, 4 rows: **−0.40 for perplexity and −0.40 for BLEU**" in page
    assert "7 models of 4,000 steps took 21 minutes on NVIDIA H200: 18 of training, 4 of" in page
    assert "Commits: abc, def." in page
    assert "**1 of 3 kept**" in page
    both = MARGIN * 2**0.5
    assert cells(page, 24) == [
        "one head instead of eight", f"+1.00 ± {both:.2f}", "+0.37", f"−1.00 ± {both:.2f}", "−0.9",
        "kept",
    ]  # fmt: skip
    assert [cells(page, line)[::5] for line in (25, 26)] == [
        ["two layers instead of six", "**not kept**"],
        ["no dropout", "undecided"],
    ]
    assert "256 instead of 512" not in page


def test_differences_of_single_seeds_are_undecided(benchmarks: Any) -> None:
    page = benchmarks.table3.page(sweep(result("base", 1, 10.0), result("A-h1", 1, 99.0)))
    assert cells(page, 24)[1:] == ["+89.00", "+0.37", "−89.00", "−0.9", "undecided"]
    assert "Rank correlation" not in page


def test_figure_shows_every_trained_row_relative_to_base(benchmarks: Any) -> None:
    chart = benchmarks.figures.differences_from_base(FOUR_ROWS)
    picture = ElementTree.fromstring(chart)
    found = {
        tag: [each[0].text for each in picture.iter() if each.tag.endswith(tag)]
        for tag in ("circle", "path")
    }
    margin = 100 * MARGIN / 10.1 * (1 + (11.1 / 10.1) ** 2) ** 0.5
    assert found["circle"][0] == f"+9.9 ± {margin:.1f} %"
    assert len(found["circle"]) == 3
    assert found["path"] == [
        f"{100 * (PAPER[row][0] / PAPER['base'][0] - 1):+.1f} % in the paper"
        for row in ("A-h1", "C-N2", "D-drop0")
    ]
    assert is_chart(chart)
    assert not re.findall(r'fill="#|fill:#', inlined(chart, "alt", "caption"))
    assert benchmarks.figures.differences_from_base(sweep(result("base", 1, 10.0)))


def test_sweeps_of_several_machines_become_one_record(benchmarks: Any) -> None:
    one = sweep(result("base", 1, 10.0), result("big", 1, 8.0))
    other = sweep(result("base", 2, 10.4), result("big", 1, 7.0), result("A-h1", 1, 11.0))
    merged = benchmarks.table3.merged([one, other])
    found = [(each["row"], each["seed"], each["perplexity"]) for each in merged["results"]]
    # The second training of big is not used.
    assert found == [("base", 1, 10.0), ("base", 2, 10.4), ("A-h1", 1, 11.0), ("big", 1, 8.0)]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (sweep(result("big", 1, 8.0, corpora="456")), "corpora: rows with"),
        (sweep(result("big", 1, 8.0, steps=2000)), r"steps: rows with \[2000, 4000\]"),
        (sweep(result("big", 1, 8.0)) | {"overrides": ["average.last=5"]}, "overrides: "),
        (sweep(result("wide", 1, 8.0)), "wide: is not a row of Table 3"),
    ],
)
def test_sweeps_that_cannot_be_compared_are_rejected(
    benchmarks: Any, other: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        benchmarks.table3.merged([sweep(result("base", 1, 10.0)), other])


def test_record_without_base_is_rejected(benchmarks: Any) -> None:
    with pytest.raises(ValueError, match="base: is not trained"):
        benchmarks.table3.merged([sweep(result("big", 1, 8.0))])


def test_page_says_nothing_about_results_without_a_record(
    benchmarks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = benchmarks.tables
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    before = "<!-- table3 -->\nearlier\n<!-- /table3 -->"
    empty = "<!-- table3 -->\nNo row is trained yet.\n<!-- /table3 -->"
    assert tables.MARKERS.sub(tables._filled, before) == empty
    (tmp_path / "table3.json").write_text(json.dumps(FOUR_ROWS))
    page = benchmarks.table3.page(FOUR_ROWS)
    assert page in tables.MARKERS.sub(tables._filled, empty)


def test_section_states_the_settings_of_the_recipe() -> None:
    text = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    section = text[text.index("## Table 3") :]
    table3 = recipe.load("table3")
    experiment = table3.experiment
    assert f"**Vocabulary**: {experiment.model.vocab_size:,} subwords" in section
    assert f"**Steps**: {experiment.training.max_steps:,} for every row." in section
    assert f"(`initial_gain = {experiment.model.initial_gain}`)" in section
    assert experiment.schedule == ScheduleConfig(), "the warm-up is the paper's"
    assert f"{table3.texts[0].max_lines:,} of them are proceedings" in section
    assert f"batches of {experiment.batch.target_tokens:,} tokens per side" in section
    assert f"beam {table3.search.beam_size} " in section


@pytest.mark.parametrize("trained", [True, False])
def test_chapter_reads_the_record_if_it_exists(
    trained: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chapter = ROOT / "docs" / "walkthrough" / "16_table_3.py"
    (cell,) = (each for each in read_cells(chapter) if each.text.startswith("record = "))
    if trained:
        record = tmp_path / "benchmarks" / "results" / "table3.json"
        record.parent.mkdir(parents=True)
        record.write_text(json.dumps(FOUR_ROWS))
    package = SimpleNamespace(__file__=str(tmp_path / "src" / "transept" / "__init__.py"))
    known = {"json": json, "Path": Path, "PAPER": PAPER, "RowResult": RowResult}
    exec(cell.text, {**known, "summarize": summarize, "transept": package})
    *rows, last = capsys.readouterr().out.splitlines()
    assert last == f"{4 if trained else 0} of 20 rows are trained"
    assert [row.split()[:3] for row in rows][:1] == ([["base", "PPL", "10.10"]] if trained else [])
