"""The walk-through runs, and the site builds without a warning."""

import json
import os
import re
import subprocess
import sys
from inspect import getsource
from pathlib import Path
from typing import NamedTuple

import pytest

from transept.model.attention import MultiHeadAttention

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "docs" / "walkthrough").glob("*.py"))

pytestmark = pytest.mark.slow


class Built(NamedTuple):
    folder: Path
    said: str
    returncode: int


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The whole site, as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    script = ROOT / "docs" / "making" / "site.py"
    command = [sys.executable, "-W", "error::UserWarning", str(script), "--output", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return Built(folder, done.stdout + done.stderr, done.returncode)


def test_every_chapter_runs(built: Built) -> None:
    # A chapter that fails says which line of it did, and the others are not run.
    assert [path.name for path in CHAPTERS if f"{path.name}  " not in built.said] == [], built.said


def test_the_site_builds_without_a_warning(built: Built) -> None:
    assert built.returncode == 0, built.said
    assert "WARNING" not in built.said


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_shows_source_results_and_pictures(built: Built, chapter: Path) -> None:
    page = built.folder / "html" / "walkthrough" / f"{chapter.stem}.html"
    text = page.read_text(encoding="utf-8")
    pictures = re.findall(r'<figure class="plot">\s*<svg[^>]*aria-label="([^"]*)"', text)
    assert all(pictures), "each is described"
    assert "printed" in text
    script = chapter.read_text(encoding="utf-8")
    assert "assert " in script
    assert bool(pictures) == ("plt." in script)
    assert ("code-block-caption" in text) == ("print(getsource" in script)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_notebook_is_the_chapter(built: Built, chapter: Path) -> None:
    path = built.folder / "source" / "walkthrough" / f"{chapter.stem}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    install, *cells = notebook["cells"]
    assert "pip" in install["source"]
    assert {cell["cell_type"] for cell in cells} == {"markdown", "code"}
    script = chapter.read_text(encoding="utf-8")
    assert all(cell["source"] in script for cell in cells if cell["cell_type"] == "code")
    assert len(cells) == len(re.findall("^# %%", script, re.MULTILINE))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_equations_of_a_chapter_are_mathml(built: Built, chapter: Path) -> None:
    page = built.folder / "html" / "walkthrough" / f"{chapter.stem}.html"
    text = page.read_text(encoding="utf-8")
    displayed = chapter.read_text(encoding="utf-8").count("$$") // 2
    assert text.count('<div class="equation"') == displayed
    formulas = re.findall(r"<math.*?</math>", text, re.DOTALL)
    assert len(formulas) >= displayed
    assert [formula for formula in formulas if "\\" in formula] == [], (
        "LaTeX that was not converted"
    )


def test_a_page_shows_a_whole_class_and_its_file(built: Built) -> None:
    page = built.folder / "source" / "walkthrough" / "03_multi_head_attention.md"
    text = page.read_text(encoding="utf-8")
    assert ":caption: MultiHeadAttention in transept/model/attention.py" in text
    assert getsource(MultiHeadAttention) in text


def test_code_of_a_plot_is_folded(built: Built) -> None:
    page = built.folder / "source" / "walkthrough" / "12_break_it_and_see.md"
    text = page.read_text(encoding="utf-8")
    folded = re.findall("<details>.*?</details>", text, re.DOTALL)
    assert len(folded) == text.count('<figure class="plot">')
    assert all("```python" in part for part in folded)


RUN = """
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
namespace = {"__name__": "__main__"}
for cell in cells:
    if cell["cell_type"] == "code":
        exec(compile(cell["source"], cell["id"], "exec"), namespace)
"""


def test_cells_of_a_notebook_run(built: Built, tmp_path: Path) -> None:
    notebooks = sorted((built.folder / "source" / "walkthrough").glob("*.ipynb"))
    environment = os.environ | {"MPLBACKEND": "agg"}
    command = [sys.executable, "-c", RUN, str(notebooks[1])]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_needs_no_network(built: Built) -> None:
    """No page loads anything from elsewhere; links that a reader may follow are another matter."""
    loads = re.compile(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(https?:)?//', re.IGNORECASE)
    pages = [*(built.folder / "html").rglob("*.html")]
    assert len(pages) > 40
    assert [page.name for page in pages if loads.search(page.read_text(encoding="utf-8"))] == []


def test_landing_page_has_a_picture_and_an_interactive_one(built: Built) -> None:
    html = built.folder / "html"
    text = (html / "index.html").read_text(encoding="utf-8")
    assert "<figure" in text
    (page,) = re.findall(r'href="(_static/attention[^"]*)"', text)
    assert "Content-Security-Policy" in (html / page).read_text(encoding="utf-8")
    assert "copy.js" in text
    assert "logo.svg" in text


def test_the_reference_tells_arguments_and_their_defaults(built: Built) -> None:
    page = (built.folder / "source" / "reference" / "using.md").read_text(encoding="utf-8")
    assert "- `models`: The directory of a model" in page
    assert "  - `beam_size` (4): The beam size" in page
    assert "  - `max_length_factor` (1.0), `max_length_extra` (50): The maximum" in page
    assert ">>> transept.load" in page
    assert "doctest" not in page
