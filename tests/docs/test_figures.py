"""Tables and charts of the documentation agree with the records of benchmarks."""

import json
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from making.pictures import inlined, is_chart, with_pictures

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("internals/performance-log.md", "internals/parsing-log.md", "tables.md")
CHARTS = (
    "train-gpu",
    "translate-gpu",
    "translate-gpu-ctranslate2",
    "translate-cpu",
    "growth-cpu",
    "server",
    "table-1-cpu",
    "table-1-gpu",
    "table-2-cpu-time",
    "table-2-cpu-flops",
    "length-cpu",
    "results",
    "parsing-length",
)


def test_tables_and_figures_are_those_of_the_results() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_figure_of_lengths_shows_every_score_of_a_parser() -> None:
    record = json.loads((ROOT / "benchmarks" / "results" / "parsing.json").read_text())
    lengths = [row for row in record["rows"] if row["work"].endswith(" words")]
    parsers = [row for row in lengths if row["system"] != "right-branching"]
    shown = [row for row in parsers if "at most" not in row["work"]]
    picture = ElementTree.parse(ROOT / "docs" / "figures" / "parsing-length.svg").getroot()
    titles = [each[0].text for each in picture.iter() if each.tag.endswith("circle")]
    assert titles == [f"{row['system']}: {row['value']:.1f}" for row in shown]


def test_the_tables_of_the_scaling_page_are_those_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = str(ROOT / "benchmarks" / "scaling_plan.py")
    monkeypatch.setattr(sys, "argv", [path, "--check"])
    runpy.run_path(path, run_name="__main__")  # exits where a table differs


def test_every_benchmark_has_its_table() -> None:
    pages = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES]
    for result in (ROOT / "benchmarks" / "results").glob("*.json"):
        place = f"<!-- /{result.stem} -->"
        assert any(place in page for page in pages), f"{result.stem} is in none of {PAGES}"


@pytest.mark.parametrize("name", CHARTS)
def test_chart_has_no_background_and_fits_both_themes(name: str) -> None:
    chart = (ROOT / "docs" / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    assert is_chart(chart)
    assert "prefers-color-scheme:dark" in chart
    shown = inlined(chart, "what it shows", "caption")
    assert 'aria-label="what it shows"' in shown
    assert "prefers-color-scheme" not in shown, "on the site its colours are the page's"
    assert not re.findall(r'fill="#|fill:#', shown)


def test_picture_with_a_title_becomes_a_figure_with_a_caption(tmp_path: Path) -> None:
    (tmp_path / "photo.png").touch()
    page = tmp_path / "page.md"
    page.write_text('![alt text](photo.png "Caption.")\n\n```text\n![kept](photo.png)\n```\n')
    text = with_pictures(page)
    assert "```{figure} photo.png\n:alt: alt text\n\nCaption.\n```" in text
    assert "![kept](photo.png)" in text, "code is not changed"
