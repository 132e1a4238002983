"""A chapter of the walk-through: a percent script, run cell by cell, as a page and a notebook.

`# %%` begins a cell of code, `# %% [markdown]` one of prose. What a cell prints and draws is kept
with it. A cell that only prints sources is shown as those sources.
"""

import ast
import base64
import contextlib
import io
import json
import re
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

MARKER = re.compile(r"^# %%( \[markdown\])?$", re.MULTILINE)
SOURCE = re.compile(r"^print\(getsource\((.+)\)\)$")
DOTS_PER_INCH = 144


class ChapterError(Exception):
    """A cell that failed."""


@dataclass(slots=True)
class Cell:
    """Prose or code, and what running it gave."""

    kind: Literal["prose", "code"]
    text: str
    line: int
    """Where it begins in the script."""
    printed: str = ""
    figures: list[bytes] = field(default_factory=list)
    """Each as PNG."""

    @property
    def shows_source(self) -> bool:
        """Whether it does nothing but print what the package's source says."""
        return all(SOURCE.match(line) for line in self.text.splitlines())


def read_cells(script: Path) -> list[Cell]:
    """The cells of a percent script, prose without its comment signs."""
    text = script.read_text(encoding="utf-8")
    cells = []
    markers = [*MARKER.finditer(text)]
    ends = [*(marker.start() for marker in markers[1:]), len(text)]
    for marker, end in zip(markers, ends, strict=True):
        body = text[marker.end() : end].strip("\n")
        line = text.count("\n", 0, marker.end()) + 2
        if marker[1]:
            prose = "\n".join(re.sub("^# ?", "", said) for said in body.splitlines())
            cells.append(Cell("prose", prose, line))
        else:
            cells.append(Cell("code", body, line))
    return cells


def run(script: Path) -> list[Cell]:
    """Run a chapter from top to bottom in a namespace of its own."""
    import matplotlib

    matplotlib.use("agg")
    cells = read_cells(script)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with _style():
        for cell in cells:
            if cell.kind == "code":
                _run(cell, namespace, script)
    return cells


def _run(cell: Cell, namespace: dict[str, Any], script: Path) -> None:
    tree = ast.increment_lineno(ast.parse(cell.text, str(script)), cell.line - 1)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, str(script), "exec"), namespace)
    except Exception as error:
        raise ChapterError(f"{script.name} failed:\n{traceback.format_exc()}") from error
    cell.printed = printed.getvalue().rstrip("\n")
    cell.figures = [*_drawn()]


def _drawn() -> Iterator[bytes]:
    """The figures that are open, which are then closed."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        png = io.BytesIO()
        figure = pyplot.figure(number)
        figure.set_layout_engine("constrained")
        figure.savefig(png, dpi=DOTS_PER_INCH, metadata={"Software": None})
        pyplot.close(number)
        yield png.getvalue()


@contextlib.contextmanager
def _style() -> Iterator[None]:
    from matplotlib import pyplot

    style: dict[Any, Any] = {
        "figure.figsize": (7.2, 3.2),
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "image.cmap": "Purples",
    }
    with pyplot.rc_context(style):
        yield


def write_page(cells: list[Cell], page: Path, notebook: str) -> None:
    """A chapter as Markdown, its figures beside it."""
    parts = []
    for number, cell in enumerate(cells):
        if cell.kind == "prose":
            parts.append(cell.text)
            continue
        if cell.shows_source:
            parts.append(_captioned(cell))
            continue
        parts.append(f"```python\n{cell.text}\n```")
        if cell.printed:
            parts.append(f"```{{code-block}} text\n:class: printed\n\n{cell.printed}\n```")
        for index, figure in enumerate(cell.figures):
            name = f"{page.stem}-{number}-{index}.png"
            (page.parent / name).write_bytes(figure)
            parts.append(f"![What the cell above draws]({name})")
    parts.append(f"---\n\nThis chapter as a notebook: {{download}}`{notebook} <{notebook}>`.")
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _captioned(cell: Cell) -> str:
    names = [match[1] for line in cell.text.splitlines() if (match := SOURCE.match(line))]
    caption, source = ", ".join(names), textwrap.dedent(cell.printed)
    return f"```{{code-block}} python\n:caption: {caption}\n:class: source\n\n{source}\n```"


def write_notebook(cells: list[Cell], path: Path) -> None:
    """A chapter as a Jupyter notebook, with what it gave."""
    notebook = {
        "cells": [_notebook_cell(number, cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _notebook_cell(number: int, cell: Cell) -> dict[str, Any]:
    shared = {"id": f"cell-{number}", "metadata": {}, "source": cell.text}
    if cell.kind == "prose":
        return {"cell_type": "markdown", **shared}
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": cell.printed})
    outputs += [
        {
            "output_type": "display_data",
            "data": {"image/png": base64.b64encode(figure).decode("ascii")},
            "metadata": {},
        }
        for figure in cell.figures
    ]
    return {"cell_type": "code", "execution_count": None, "outputs": outputs, **shared}
