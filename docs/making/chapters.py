"""A chapter of the walk-through: a percent script, run cell by cell, as a page and a notebook.

`# %%` begins a cell of code, `# %% [markdown]` one of prose. The output and the plots of a cell are
stored with it. A cell that only prints sources is shown as those sources. A comment
`# Figure: TEXT` in a cell is the caption of its plot, and is left out of the page's code. The code
of a cell that begins with such a comment is folded on the page, below the plot.
"""

import ast
import base64
import contextlib
import inspect
import io
import json
import re
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import Any, Literal

from making.notebooks import offer, opening, repository, without_links
from making.palette import LIGHT
from making.pictures import inlined

MARKER = re.compile(r"^# %%( \[markdown\])?$", re.MULTILINE)
SOURCE = re.compile(r"^print\(getsource\((.+)\)\)$")
FIGURE = re.compile(r"^# Figure: (.+)\n", re.MULTILINE)
CHAPTER = re.compile(r"\]\((\d\d_\w+)\.py\)")
"""A link to a chapter, which is a script in the repository and a page on the site."""
DOTS_PER_INCH = 144
INK = "#1b1f24"
"""The colour of text and axes. On the page it is the colour of the text around a plot."""


class ChapterError(Exception):
    """A cell that failed."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure that a cell drew."""

    png: bytes
    """On white paper, for a notebook."""
    svg: str
    """Transparent, with text and axes in the colour of the page's text."""
    described: str
    """What it shows, for readers who do not see it."""


@dataclass(slots=True)
class Cell:
    """Prose or code, and the output of running it."""

    kind: Literal["prose", "code"]
    text: str
    line: int
    """Where it begins in the script."""
    printed: str = ""
    figures: list[Plot] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    """The files of the sources that it prints, by name."""

    @property
    def captions(self) -> list[str]:
        """The captions of its figures."""
        return FIGURE.findall(self.text)

    @property
    def shows_source(self) -> bool:
        """Whether it does nothing but print what the package's source says."""
        return all(SOURCE.match(line) for line in self.text.splitlines())

    @property
    def only_plots(self) -> bool:
        """Whether it does nothing but draw a plot, so that its code is folded."""
        return FIGURE.match(self.text) is not None


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
    """Run a chapter from top to bottom in a separate namespace."""
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
    if cell.shows_source:
        names = [found[1] for line in cell.text.splitlines() if (found := SOURCE.match(line))]
        cell.origins = {name: _file_of(eval(name, namespace)) for name in names}
    if len(cell.captions) != len(cell.figures):
        raise ChapterError(f"{script.name}, line {cell.line}: each plot needs a line `# Figure: …`")


def _file_of(shown: object) -> str:
    module = inspect.getmodule(shown)
    assert module is not None, f"{shown} belongs to a module"
    return f"{module.__name__.replace('.', '/')}.py"


def _drawn() -> Iterator[Plot]:
    """The figures that are open, which are then closed."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        png, svg = io.BytesIO(), io.StringIO()
        figure = pyplot.figure(number)
        figure.set_layout_engine("constrained")
        figure.savefig(png, dpi=DOTS_PER_INCH, metadata={"Software": None})
        figure.savefig(svg, format="svg", dpi=DOTS_PER_INCH, transparent=True)
        yield Plot(png.getvalue(), _fit_page(svg.getvalue()), _described(figure))
        pyplot.close(number)


def _fit_page(svg: str) -> str:
    """An SVG file as part of a page: without its head, in the colour of the page's text."""
    drawing = svg[svg.index("<svg ") :]
    drawing = re.sub(r" *<metadata>.*?</metadata>\n", "", drawing, flags=re.DOTALL)
    drawing = drawing.replace(INK, "currentColor").replace("#000000", "currentColor")
    for number, colour in enumerate(LIGHT.series):
        drawing = drawing.replace(colour, f"var(--chart-{number})")
    return drawing.replace("<svg ", '<svg role="img" aria-label="" ', 1)


def _described(figure: Any) -> str:
    """The kind, title, axes and curves of each panel."""
    panels = dict.fromkeys(map(_panel, figure.axes))
    return ". ".join(panels) + "."


def _panel(axis: Any) -> str:
    if axis.images:
        kind = "Heat map"
    elif axis.lines:
        kind = "Curves"
    else:
        kind = "Bars" if axis.patches else "Drawing"
    curves = [line.get_label() for line in axis.lines if not line.get_label().startswith("_")]
    ends = " against ".join(filter(None, (axis.get_ylabel(), axis.get_xlabel())))
    said = [axis.get_title(), ends, ", ".join(curves)]
    return ": ".join(filter(None, (kind, "; ".join(filter(None, said)))))


@contextlib.contextmanager
def _style() -> Iterator[None]:
    from cycler import cycler
    from matplotlib import pyplot

    style: dict[Any, Any] = {
        "axes.prop_cycle": cycler(color=LIGHT.series),
        "figure.figsize": (7.2, 3.2),
        "font.size": 9,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "image.cmap": _from_paper("#1583c4"),
        "legend.framealpha": 0.0,
        "svg.fonttype": "none",
        "svg.hashsalt": "transept",
    }
    with pyplot.rc_context(style):
        yield


def _from_paper(colour: str) -> str:
    """The name of a colour map from transparent to a colour."""
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    name = f"from paper to {colour}"
    if name not in colormaps:
        ends = [(*to_rgb(colour), 0.0), (*to_rgb(colour), 1.0)]
        colormaps.register(LinearSegmentedColormap.from_list(name, ends))
    return name


def write_page(cells: list[Cell], page: Path, notebook: str) -> None:
    """A chapter as Markdown, with its figures."""
    parts = []
    for cell in cells:
        if cell.kind == "prose":
            parts.append(link_pages(cell.text))
            continue
        if cell.shows_source:
            parts.append(_captioned(cell))
            continue
        plots = [
            inlined(plot.svg, plot.described, caption)
            for plot, caption in zip(cell.figures, cell.captions, strict=True)
        ]
        code = [f"```python\n{FIGURE.sub('', cell.text)}\n```"]
        if cell.printed:
            code.append(f"```{{code-block}} text\n:class: printed\n\n{cell.printed}\n```")
        if cell.only_plots:
            parts += [*plots, "<details><summary>Code of the plot</summary>", *code, "</details>"]
        else:
            parts += [*code, *plots]
    parts.append(f"---\n\n{offer(notebook, repository())}")
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def link_pages(prose: str) -> str:
    """Link the pages of chapters instead of their scripts."""
    return CHAPTER.sub(r"](\1.md)", prose)


def _captioned(cell: Cell) -> str:
    names = {
        file: ", ".join(name for name, origin in cell.origins.items() if origin == file)
        for file in dict.fromkeys(cell.origins.values())
    }
    caption = ", ".join(f"{name} in {file}" for file, name in names.items()).replace("_", r"\_")
    source = textwrap.dedent(cell.printed)
    return f"```{{code-block}} python\n:caption: {caption}\n:class: source\n\n{source}\n```"


def write_notebook(cells: list[Cell], path: Path) -> None:
    """A chapter as a Jupyter notebook, with its output."""
    notebook = {
        "cells": [opening(repository()), *starmap(_notebook_cell, enumerate(cells))],
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
        return {"cell_type": "markdown", **shared, "source": without_links(cell.text)}
    outputs: list[dict[str, Any]] = []
    if cell.printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": cell.printed})
    outputs += [
        {
            "output_type": "display_data",
            "data": {"image/png": base64.b64encode(plot.png).decode("ascii")},
            "metadata": {},
        }
        for plot in cell.figures
    ]
    return {"cell_type": "code", "execution_count": None, "outputs": outputs, **shared}
