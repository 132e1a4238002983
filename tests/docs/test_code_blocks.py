"""What stands in README and docs as code runs, or says why it does not."""

import re
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from tests.docs.blocks import RUNNABLE, Reader, blocks_of

from transept.apps.convert.exporting import Exportable, export_marian
from transept.apps.recipes import recipe

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = {"", "text", "bibtex", "nginx", "ini", "toml", "{toctree}", "{raw} html"}
"""Output, and files of other programs."""

README_NOT_RUN = {
    "make install": "is how these tests come to run; a slow test runs the demo",
    "transept data prepare": "needs your files; the guide on fine-tuning runs the same commands",
    "transept serve": "does not end; the guide on serving runs it",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_block_is_code_that_runs_or_is_marked(page: Path) -> None:
    for block in blocks_of(page):
        assert block.language in (*RUNNABLE, *SHOWN), f"{block.name}: what is {block.language!r}?"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_whose_code_runs_is_run_here(page: Path) -> None:
    followed = {*GUIDES.glob("*.md"), ROOT / "README.md", *(ROOT / "docs" / name for name in RUN)}
    assert page in followed or not any(block.runs for block in blocks_of(page))


RUN = ["attention.md", "engines.md", "models.md"]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_a_page_runs(reader: Reader, name: str) -> None:
    reader.follow(ROOT / "docs" / name)


def test_readme_runs(reader: Reader) -> None:
    blocks = blocks_of(ROOT / "README.md")
    python = [block for block in blocks if block.language == "python"]
    reader.run(python[0], "\n".join(block.text for block in python))
    shell = [block for block in blocks if block.language == "sh"]
    left_out = {block for block in shell if block.text.startswith(tuple(README_NOT_RUN))}
    assert len(left_out) == len(README_NOT_RUN)
    for block in shell:
        if block not in left_out:
            reader.run(block, block.text)


@pytest.mark.slow
def test_the_guide_on_reproducing_runs_where_it_can(reader: Reader) -> None:
    recipes, presets = reader.follow(GUIDES / "reproduce.md")
    assert "wmt14-en-fr-big" in recipes
    assert "max_steps = 100000" in recipes
    assert recipes.count("to do") == 7
    assert "B-dk16" in presets


@pytest.mark.slow
def test_the_guide_on_documents_runs(reader: Reader) -> None:
    shell, _ = reader.follow(GUIDES / "documents.md")
    for markup in ("# ", "**", "](https://example.org)", "<p>", "<b>"):
        assert markup in shell


@pytest.mark.slow
def test_the_guide_on_exporting_runs(reader: Reader) -> None:
    reader.follow(GUIDES / "export.md")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_guide_on_opus_mt_runs(new_reader: Reader) -> None:
    # In place of the download: a model in the same format.
    export_marian(Exportable.load("en-de"), new_reader.directory / "opus-mt-en-de")
    printed = new_reader.follow(GUIDES / "opus-mt.md")
    assert "Hugging Face MarianMT" in printed[0]
    assert "Wo ist der Bahnhof?" in printed[1]
    assert "Wo ist der Bahnhof?" in printed[2]


@pytest.mark.slow
def test_guide_on_libretranslate_runs(new_reader: Reader) -> None:
    exported, imported = new_reader.follow(GUIDES / "libretranslate.md")
    assert "verified with CTranslate2" in exported
    assert "Argos Translate" in imported
    assert "Es regnet" in imported


@pytest.mark.slow
def test_fine_tuning_guide_raises_bleu(new_reader: Reader) -> None:
    before, after = bleu_scores(new_reader.follow(GUIDES / "fine-tune.md"))
    assert after > max(80, before + 10)


def bleu_scores(printed: list[str]) -> list[float]:
    scores = re.findall(r"^sacreBLEU +(\d+\.\d+)", "".join(printed), re.MULTILINE)
    return [float(score) for score in scores]


@pytest.mark.slow
def test_the_guide_on_varying_runs(new_reader: Reader) -> None:
    blocks = [block for block in blocks_of(GUIDES / "vary.md") if block.runs]
    last = max(n for n, block in enumerate(blocks) if block.language == "sh")
    rows = [new_reader.run(block) for block in blocks[: last + 1]][-1]
    assert rows.count("sacreBLEU") == rows.count("perplexity per token") == 5
    printed = new_reader.run(blocks[-1], "\n".join(block.text for block in blocks[last + 1 :]))
    right = re.search(r"(\d+) of 100 are copied", printed)
    assert right is not None
    assert int(right[1]) > 90


def test_recipe_in_the_guide_on_reproducing_is_valid(tmp_path: Path) -> None:
    (block,) = (one for one in blocks_of(GUIDES / "reproduce.md") if one.language == "toml")
    path = tmp_path / "open.toml"
    path.write_text(block.text, encoding="utf-8")
    assert [test.name for test in recipe.load(str(path)).tests] == ["tatoeba", "newstest2014"]


def test_recipe_in_the_guide_on_distilling_is_valid(tmp_path: Path) -> None:
    (block,) = (one for one in blocks_of(GUIDES / "distil.md") if one.language == "toml")
    path = tmp_path / "student.toml"
    path.write_text(block.text, encoding="utf-8")
    mine, german, times = recipe.load(str(path)).texts
    assert (mine.translator, german.translator, times.translator) == (
        *(("teacher.toml",), ("de-en",), ()),
    )


@pytest.mark.slow
def test_the_guide_on_parsing_runs(new_reader: Reader) -> None:
    printed = "".join(new_reader.follow(GUIDES / "parse.md"))
    assert "(S" in printed
    assert "F1" in printed


@pytest.mark.slow
def test_the_guide_on_serving_runs(reader: Reader) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first, *others = [block for block in blocks_of(GUIDES / "serve.md") if block.runs]
    assert first.mark == "serves"
    # Port 5000 may be somebody else's here.
    start = reader.arguments(first, f"exec {first.text.strip()} --port {port}")
    server = subprocess.Popen(start, cwd=reader.directory, env=reader.environment)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server)
        printed = [reader.run(block, block.text.replace("5000", str(port))) for block in others]
    finally:
        server.terminate()
        server.wait(timeout=120)
    assert "translatedText" in printed[0]
    assert "event: done" in printed[2]
    assert "Kinder" in printed[2]


@pytest.mark.slow
def test_the_guide_on_terminology_runs(reader: Reader) -> None:
    printed = "".join(reader.follow(GUIDES / "terms.md"))
    assert "Die Besprechung ist am Montag." in printed
    assert "Task Manager" in printed


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer")
