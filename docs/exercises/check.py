"""Check your answers: `python check.py 3` checks exercise 3, `python check.py` checks them all.

Write your answers into the files 01_attention.py to 20_length_penalty.py beside this one. A check
runs your functions on small examples, compares them with the package's own code, and prints what
is wrong in a sentence. The solutions are in the folder `solutions`.
"""

import argparse
import ast
import contextlib
import io
import sys
import traceback
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Literal, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "checks"))  # for `comparing`, which the checks share
if find_spec("transept") is None:
    sys.exit("The checks compare your answers with transept: install it first (docs/install.md).")

from comparing import WrongAnswerError  # noqa: E402

MARKS = {"right": "✓", "wrong": "✗", "to do": "·"}


class Result(NamedTuple):
    """What a check found."""

    title: str
    verdict: Literal["right", "wrong", "to do"]
    message: str = ""


def exercises() -> list[Path]:
    """The starting files, in order."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def check(exercise: Path, folder: Path = HERE) -> Result:
    """Check the answer to an exercise, which is the file of the same name in `folder`."""
    answer = folder / exercise.name
    docstring = ast.get_docstring(ast.parse(exercise.read_text(encoding="utf-8"))) or ""
    title = docstring.splitlines()[0].rstrip(".")
    checks = load(HERE / "checks" / exercise.name)
    try:
        checks.check(load(answer))
    except WrongAnswerError as wrong:
        return Result(title, "wrong", str(wrong))
    except NotImplementedError as error:
        return Result(title, "to do", f"write {place(error, answer)}")
    except Exception as error:
        what = str(error) or "no message"
        return Result(title, "wrong", f"{type(error).__name__} in {place(error, answer)}: {what}")
    return Result(title, "right")


def load(path: Path) -> ModuleType:
    """Run a file as a module. Its name may begin with a digit, so `import` cannot."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def place(error: Exception, answer: Path) -> str:
    """The function and the line of an answer in which an error was raised."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(answer)]
    return f"`{own[-1].name}`, line {own[-1].lineno}" if own else answer.name


def main() -> int:
    """Print the result of the chosen exercises, and the progress over all."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("number", nargs="?", type=int, help="the exercise; default: all")
    arguments.add_argument("--folder", type=Path, default=HERE, help="where your answers are")
    chosen = arguments.parse_args()
    files, folder = exercises(), chosen.folder.resolve()
    if chosen.number is not None and not 1 <= chosen.number <= len(files):
        arguments.error(f"there are exercises 1 to {len(files)}")
    with contextlib.redirect_stdout(io.StringIO()):  # they may print, too
        results = [check(exercise, folder) for exercise in files]
    shown = results
    if chosen.number is not None:
        shown = [check(files[chosen.number - 1], folder)]
    for result in shown:
        print(f"{MARKS[result.verdict]} {result.title}")
        if result.message and (result.verdict == "wrong" or chosen.number):
            print(f"    {result.message}")
    n_right = sum(result.verdict == "right" for result in results)
    marks = "".join(MARKS[result.verdict] for result in results)
    print(f"\n{marks}  {n_right} of {len(results)} are right")
    return int(any(result.verdict != "right" for result in shown))


if __name__ == "__main__":
    raise SystemExit(main())
