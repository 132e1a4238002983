"""The checks of the exercises accept the solutions and nothing else."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from zipfile import ZipFile

import pytest
from making.exercises import write_exercises
from tests.docs.wrong_answers import WRONG_ANSWERS, Mistake

EXERCISES = Path(__file__).resolve().parents[2] / "docs" / "exercises"
CHECK = EXERCISES / "check.py"
checker = run_path(str(CHECK))
FILES: list[Path] = checker["exercises"]()
MISTAKES = [
    pytest.param(stem, mistake, id=f"{stem}-{number}")
    for stem, mistakes in WRONG_ANSWERS.items()
    for number, mistake in enumerate(mistakes, start=1)
]


def defined(path: Path) -> list[str]:
    """The names of functions and methods, with their arguments."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return [f"{one.name}({ast.unparse(one.args)})" for one in functions]


def test_there_are_twenty_exercises_each_with_three_wrong_answers() -> None:
    assert [int(path.stem[:2]) for path in FILES] == list(range(1, 21))
    assert list(WRONG_ANSWERS) == [path.stem for path in FILES]
    assert len(MISTAKES) == 60


@pytest.mark.parametrize("exercise", FILES, ids=lambda path: path.stem)
def test_starting_file_is_to_do(exercise: Path) -> None:
    result = checker["check"](exercise)
    assert result.verdict == "to do"
    assert "line " in result.message


@pytest.mark.parametrize("exercise", FILES, ids=lambda path: path.stem)
def test_solution_is_right(exercise: Path) -> None:
    solutions = EXERCISES / "solutions"
    result = checker["check"](exercise, solutions)
    assert result.verdict == "right", result.message
    assert set(defined(exercise)) <= set(defined(solutions / exercise.name))


@pytest.mark.parametrize(("stem", "mistake"), MISTAKES)
def test_wrong_answer_is_explained(stem: str, mistake: Mistake, tmp_path: Path) -> None:
    exercise = EXERCISES / f"{stem}.py"
    solution = (EXERCISES / "solutions" / exercise.name).read_text(encoding="utf-8")
    assert solution.count(mistake.instead_of) >= 1, "the solution has changed"
    answer = solution.replace(mistake.instead_of, mistake.write)
    (tmp_path / exercise.name).write_text(answer, encoding="utf-8")
    result = checker["check"](exercise, tmp_path)
    assert result.verdict == "wrong"
    assert mistake.message in result.message


def test_answer_with_a_syntax_error_is_explained(tmp_path: Path) -> None:
    (tmp_path / FILES[0].name).write_text("def attention(q, k, v)\n", encoding="utf-8")
    result = checker["check"](FILES[0], tmp_path)
    assert (result.verdict, result.message[:21]) == ("wrong", "SyntaxError in line 1")


def test_answer_without_the_function_is_explained(tmp_path: Path) -> None:
    (tmp_path / FILES[0].name).write_text("", encoding="utf-8")
    result = checker["check"](FILES[0], tmp_path)
    assert result.verdict == "wrong"
    assert "has no attribute 'attention'" in result.message


def test_last_exercise_states_the_outputs_of_its_model() -> None:
    text = FILES[-1].read_text(encoding="utf-8")
    rows = re.findall(r"^ {4}(\w+\.) +(\d+) +−(\d\.\d\d)$", text, re.MULTILINE)
    model = checker["load"](EXERCISES / "checks" / FILES[-1].name)
    assert {output: -float(log_p) for output, _, log_p in rows} == model.LOG_P
    assert all(len(output) == int(length) for output, length, _ in rows)


def test_site_has_a_page_per_exercise_and_an_archive(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text((EXERCISES / "index.md").read_text("utf-8"), "utf-8")
    write_exercises(EXERCISES, tmp_path)
    index = (tmp_path / "index.md").read_text("utf-8")
    for number, path in enumerate(FILES, start=1):
        page = (tmp_path / f"{path.stem}.md").read_text("utf-8")
        assert page.startswith(f"# {number}. ")
        assert "raise NotImplementedError" in page.partition("<summary>Hint</summary>")[2]
        assert f"]({path.stem}.md)" in index
    names = ZipFile(tmp_path / "exercises.zip").namelist()
    assert {"exercises/check.py", "exercises/01_attention.py"} < set(names)
    assert len(names) == len([*EXERCISES.rglob("*.py")])


def test_page_lists_every_exercise_and_no_other() -> None:
    page = (EXERCISES / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| \[[^]]+\]\((\w+\.py)\)", page, re.MULTILINE)
    assert listed == [(str(number), path.name) for number, path in enumerate(FILES, start=1)]


def test_command_prints_result_and_progress(tmp_path: Path) -> None:
    for path in (EXERCISES / "solutions").glob("0*.py"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for path in FILES[9:]:
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, str(CHECK), "12", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 1, done.stderr
    assert "Exercise 12: label smoothing" in done.stdout
    assert "write `smoothed_loss`, line " in done.stdout
    assert "✓✓✓✓✓✓✓✓✓···········  9 of 20 are right" in done.stdout
