"""A notebook of a chapter runs where only the wheel is installed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from making.notebooks import in_colab, offer, opening, without_links

CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "docs" / "walkthrough").glob("*.py"))
ADDRESS = "https://github.com/someone/transept"


def imported(script: Path) -> set[str]:
    """The names of the packages that a chapter imports."""
    found = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_imports_only_what_its_notebook_installs(chapter: Path) -> None:
    installed = {"transept", "torch", "numpy", "matplotlib"}
    assert imported(chapter) - set(sys.stdlib_module_names) <= installed


def test_first_cell_installs_nothing_if_the_package_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    exec(opening(None)["source"], {})
    assert ran == []


@pytest.mark.parametrize(
    ("wheel", "address", "installed"),
    [
        ("transept-0.1.0-py3-none-any.whl", ADDRESS, "transept-0.1.0-py3-none-any.whl"),
        (None, ADDRESS, f"git+{ADDRESS}"),
    ],
)
def test_first_cell_installs_the_wheel_or_the_repository(
    wheel: str | None,
    address: str,
    installed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: ran.append(command))
    monkeypatch.chdir(tmp_path)
    if wheel:
        (tmp_path / wheel).touch()
    exec(opening(address)["source"], {})
    assert ran[0][-2:] == [installed, "matplotlib"]


def test_first_cell_says_what_to_do_without_wheel_and_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="make notebooks"):
        exec(opening(None)["source"], {})


def test_page_links_colab_if_the_repository_is_known() -> None:
    address = in_colab("01.ipynb", f"{ADDRESS}.git")
    assert address == (
        "https://colab.research.google.com/github/someone/transept/blob/notebooks/01.ipynb"
    )
    assert address in offer("01.ipynb", ADDRESS)
    assert "Colab" not in offer("01.ipynb", None)


def test_prose_of_a_notebook_has_no_links_to_pages_of_the_site() -> None:
    prose = "See the [guide to\ntraining](../guides/train.md) and [the paper](https://arxiv.org)."
    assert without_links(prose) == "See the guide to\ntraining and [the paper](https://arxiv.org)."
