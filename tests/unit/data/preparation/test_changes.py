"""The differences between two preparations, by argument name."""

from dataclasses import replace

from transept.data.cleaning import Cleaning
from transept.data.preparation.changes import changes
from transept.data.shards import STREAM, InputRecord, Settings
from transept.errors import DataError

TSV = InputRecord(format="tsv", paths=("a.tsv",), bytes=(1200,), options=("1", "2"))
LINES = InputRecord(format="lines", paths=("a.en", "a.de"), bytes=(10, 20))
SETTINGS = Settings(
    inputs=(TSV,), source_tokenizer="a" * 64, target_tokenizer="a" * 64, cleaning=Cleaning()
)


def lines(before: Settings, now: Settings) -> list[str]:
    """The changes as shown to callers of the Python API."""
    return str(DataError(*changes(before, now))).split("\n  ")[1:]


def test_equal_settings_have_no_changes() -> None:
    assert changes(SETTINGS, SETTINGS) == ()
    assert changes(SETTINGS, replace(SETTINGS, cleaning=Cleaning(max_ratio=3))) == ()


def test_arguments_are_named_as_the_caller_knows_them() -> None:
    error = DataError(*changes(SETTINGS, replace(SETTINGS, cleaning=Cleaning(drop_empty=False))))
    assert error.message(str.upper) == "\n  DROP_EMPTY: True -> False"


def test_inputs_are_shown_as_given() -> None:
    turned = replace(TSV, options=("2", "1"))
    [line] = lines(SETTINGS, replace(SETTINGS, inputs=(turned,)))
    before, _, after = line.partition(" -> ")
    assert before == "input 1: `tsv` a.tsv (1,200 bytes) `columns` 1 2"
    assert after == "`tsv` a.tsv (1,200 bytes) `columns` 2 1"
    piped = replace(TSV, paths=("-",), bytes=(STREAM,))
    assert lines(replace(SETTINGS, inputs=(LINES,)), replace(SETTINGS, inputs=(LINES, piped))) == [
        "input 2: none -> `tsv` - `columns` 1 2"
    ]
    longer = replace(LINES, bytes=(10, 21))
    [line] = lines(replace(SETTINGS, inputs=(LINES,)), replace(SETTINGS, inputs=(longer,)))
    assert line.endswith("-> `source` a.en (10 bytes) `target` a.de (21 bytes)")


def test_vocabularies_are_shown_by_a_short_hash() -> None:
    cleaned = replace(SETTINGS, cleaning=Cleaning(max_tokens=100, drop_empty=False))
    assert lines(SETTINGS, cleaned) == ["`max_tokens`: 250 -> 100", "`drop_empty`: True -> False"]
    # The hashes differ where they are no longer shown.
    other = replace(SETTINGS, target_tokenizer="a" * 63 + "b")
    assert lines(SETTINGS, other) == ["`target_tokenizer`: none -> aaaaaaaaaaaa…"]
    both = replace(other, source_tokenizer="a" * 63 + "b")
    assert lines(SETTINGS, both) == ["`tokenizer`: aaaaaaaaaaaa… -> aaaaaaaaaaaa…"]
