"""Build the site: `python docs/making/site.py --output build/docs`.

Everything that is generated lies in `OUTPUT/source`, what a browser opens in `OUTPUT/html`.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(DOCS))

from making.chapters import run, write_notebook, write_page  # noqa: E402
from making.reference import write_reference  # noqa: E402


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
    write_reference(source / "reference")
    write_walkthrough(source / "walkthrough", chosen.chapters)
    return 0 if chosen.no_html else build(source, chosen.output / "html")


def write_walkthrough(folder: Path, names: list[str] | None) -> None:
    """Every chapter as a page and as a notebook."""
    for script in sorted((DOCS / "walkthrough").glob("*.py")):
        if names is not None and script.stem not in names:
            continue
        begun = time.perf_counter()
        cells = run(script)
        notebook = folder / f"{script.stem}.ipynb"
        write_notebook(cells, notebook)
        write_page(cells, folder / f"{script.stem}.md", notebook.name)
        print(f"{script.name}  {time.perf_counter() - begun:.1f} s", flush=True)


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
