"""One module writes files: whatever else does must say why it may."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "transept"
STORAGE = "runtime/storage.py"
MAY_WRITE = {
    STORAGE: "this is the one",
    "apps/convert/exporting.py": "files of a directory that appears when it is whole",
    "checkpoint.py": "files of a directory that appears when it is whole",
    "data/fetching/archives.py": "what is unpacked, in a place that is thrown away",
    "data/fetching/download.py": "half a download is kept, to go on from there",
    "data/fetching/fetch.py": "splits, in a place that is thrown away; they are flushed and moved",
    "data/preparation/journal.py": "files that only grow",
    "formats/huggingface_writer.py": "files of a directory that appears when it is whole",
    "training/observers.py": "a log only grows",
}


Call = tuple[str, list[object]]


def calls(tree: ast.AST) -> Iterator[Call]:
    """What is called, by the last part of its name, and with which constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            yield name, [value.value for value in given if isinstance(value, ast.Constant)]


def writes(name: str, given: list[object]) -> bool:
    modes = {text for text in given if isinstance(text, str) and {*text} <= {*"rwaxbt+"}}
    return name in ("write_text", "write_bytes", "save_file") or (
        name in ("open", "fdopen") and any({*mode} & {*"wax+"} for mode in modes)
    )


@pytest.fixture(scope="module")
def called() -> dict[str, list[Call]]:
    """The calls in each module of the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): [*calls(ast.parse(path.read_text(encoding="utf-8")))]
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def test_a_writer_is_known_to_be_one(called: dict[str, list[Call]]) -> None:
    found = {path for path, made in called.items() if any(writes(*call) for call in made)}
    assert STORAGE in found
    assert not found - MAY_WRITE.keys(), f"use {STORAGE}: a file is whole, or it is not there"


def test_the_checksum_of_a_file_is_computed_in_one_place(called: dict[str, list[Call]]) -> None:
    found = {path for path, made in called.items() if "file_digest" in {name for name, _ in made}}
    assert found == {STORAGE}, f"use `digest` or `Stored.of` of {STORAGE}"


def test_writing_is_seen() -> None:
    for text in ('p.open("wb")', 'open(p, mode="a")', "p.write_text(x)", 'os.fdopen(d, "r+b")'):
        assert any(writes(*call) for call in calls(ast.parse(text))), text
    for text in ('p.open("rb")', "p.open()", "p.read_text()", 'tarfile.open(name, "r|gz")'):
        assert not any(writes(*call) for call in calls(ast.parse(text))), text
