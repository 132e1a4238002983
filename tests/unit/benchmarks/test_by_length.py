"""`benchmarks/by_length.py`: which sentences are joined for a range of lengths."""

import importlib
from pathlib import Path
from typing import Any

import pytest

import transept

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def by_length() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("by_length")


def test_consecutive_sentences_are_joined_until_they_are_long_enough(by_length: Any) -> None:
    lengths, sources, references = [3, 5, 20, 4, 9], [*"abcde"], [*"ABCDE"]
    short = by_length.inputs_in(lengths, sources, references, 1, 5)
    assert (short.sources, short.references) == (["a", "b", "d"], ["A", "B", "D"])
    # c alone is longer than the range, and no sentence occurs twice.
    long = by_length.inputs_in(lengths, sources, references, 7, 13)
    assert (long.sources, long.references) == (["a b", "d e"], ["A B", "D E"])


def test_ranges_do_not_overlap(by_length: Any) -> None:
    lows, highs = zip(*by_length.RANGES, strict=True)
    assert lows == (1, *(high + 1 for high in highs[:-1]))


def test_inputs_longer_than_those_of_the_training_are_not_split(by_length: Any) -> None:
    model = transept.load("en-de")
    text = "This is a word. " * (model.max_source_length // 5)
    assert len(model.source_tokenizer.encode(text)) > model.max_source_length
    (found,) = by_length.translated_whole(model, [text])
    assert [one.source for one in found.sentences] == [text.strip()]
    assert not found.too_long
