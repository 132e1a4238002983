"""Build the site: `python docs/making/site.py --output build/docs`.

The pages that Sphinx reads are written to `OUTPUT/source`, and the site to `OUTPUT/html`.
"""

import argparse
import os
import re
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS))

from making.chapters import link_pages, run, write_notebook, write_page  # noqa: E402
from making.commands import write_commands  # noqa: E402
from making.exercises import write_exercises  # noqa: E402
from making.live import add_live, write_live  # noqa: E402
from making.pictures import with_pictures  # noqa: E402
from making.reference import write_reference  # noqa: E402
from making.settings import write_settings  # noqa: E402

CHAPTERS_AT_ONCE = 2
SENTENCE = "The old man reads a book in the garden."
"""The sentence of the landing page's pictures."""
OUTSIDE = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)")
"""A link from a page to a file above its folder."""


def main() -> int:
    """Run, read, build; any warning is an error."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--output", type=Path, default=Path("build/docs"))
    arguments.add_argument("--chapters", nargs="*", help="run these only, by their names")
    arguments.add_argument("--no-html", action="store_true", help="stop before Sphinx")
    chosen = arguments.parse_args()
    source = chosen.output / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("making", "*.py", "__pycache__"))
    add_guides(source / "index.md")
    link_chapters(source / "walkthrough" / "index.md")
    for page in source.rglob("*.md"):
        copy_linked(page, source)
        page.write_text(with_pictures(page), encoding="utf-8")
    write_reference(source / "reference")
    write_commands(source / "commands")
    write_settings(source)
    write_exercises(DOCS / "exercises", source / "exercises")
    write_walkthrough(source / "walkthrough", chosen.chapters)
    if chosen.no_html:
        return 0
    failed = build(source, chosen.output / "html")
    write_attention(chosen.output / "html" / "_static" / "attention.html")
    write_live(chosen.output / "html" / "_static" / "live")
    return failed


def add_guides(index: Path) -> None:
    """Put guides that the landing page does not list at the end of its list of guides."""
    text = index.read_text(encoding="utf-8")
    guides = sorted(f"guides/{path.stem}" for path in (index.parent / "guides").glob("*.md"))
    new = [guide for guide in guides if not re.search(rf"^{guide}$", text, re.MULTILINE)]
    last = [*re.finditer(r"^guides/\S+$", text, re.MULTILINE)][-1].end()
    index.write_text("\n".join([text[:last], *new]) + text[last:], encoding="utf-8")


def link_chapters(index: Path) -> None:
    """Link the pages of the chapters instead of their scripts."""
    index.write_text(link_pages(index.read_text(encoding="utf-8")), encoding="utf-8")


def copy_linked(page: Path, source: Path) -> None:
    """Copy the files of the repository that a page links and that are not in docs/.

    They get the same place relative to the page.
    """
    for link in OUTSIDE.findall(page.read_text(encoding="utf-8")):
        original = (DOCS / page.relative_to(source).parent / link).resolve()
        place = (page.parent / link).resolve()
        if not original.is_relative_to(DOCS) and original.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(original, place)


def write_attention(page: Path) -> None:
    """The interactive page of `transept visualize`, for a sentence of the bundled model."""
    from transept import load
    from transept.apps.visualize.figures import Choice
    from transept.apps.visualize.html import to_html

    attention = load("en-de", engine="native", device="cpu").attend(SENTENCE)
    page.write_text(to_html(attention, Choice(kind="source")), encoding="utf-8")


def write_walkthrough(folder: Path, names: list[str] | None) -> None:
    """Every chapter as a page and as a notebook. Two run at a time.

    Later chapters run longer, so they are started first.
    """
    scripts = sorted((DOCS / "walkthrough").glob("*.py"), reverse=True)
    chosen = [script for script in scripts if names is None or script.stem in names]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Not forked: torch's threads do not survive a fork.
    with ProcessPoolExecutor(CHAPTERS_AT_ONCE, get_context("spawn")) as pool:
        for said in pool.map(write_chapter, chosen, repeat(folder)):
            print(said, flush=True)


def write_chapter(script: Path, folder: Path) -> str:
    """A chapter as a page and as a notebook; returns its name and how long it ran."""
    begun = time.perf_counter()
    cells = run(script)
    notebook = folder / f"{script.stem}.ipynb"
    write_notebook(cells, notebook)
    write_page(cells, page := folder / f"{script.stem}.md", notebook.name)
    add_live(page)
    return f"{script.name}  {time.perf_counter() - begun:.1f} s"


def build(source: Path, html: Path) -> int:
    """What a browser opens."""
    from sphinx.cmd.build import main as sphinx

    shutil.rmtree(html, ignore_errors=True)
    options = ["-W", "--keep-going", "-q", "-E", "-c", str(DOCS), "-b", "html"]
    failed = int(sphinx([*options, str(source), str(html)]))
    if not failed:
        print(f"{html / 'index.html'}")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
