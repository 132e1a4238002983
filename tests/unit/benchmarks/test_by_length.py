"""`benchmarks/by_length.py`: which sentences are joined for a range of lengths."""

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


class Recorder:
    """A model that was trained on short sentences, and remembers how it is called."""

    source_tokenizer = SimpleNamespace(encode=str.split)

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def translate(self, texts: list[str], **options: Any) -> list[Any]:
        self.options = options
        return [SimpleNamespace(text=text) for text in texts]

    def score(self, sources: list[str], targets: list[str], **_: Any) -> list[Any]:
        return [SimpleNamespace(tokens=target.split(), log_probability=-1.0) for target in targets]


def test_inputs_longer_than_those_of_the_training_are_not_split(by_length: Any) -> None:
    model, texts = Recorder(), ["word " * 60, "word " * 250]
    by_length.measure(model, by_length.Inputs(texts, texts))
    # The limit counts the end symbol.
    assert model.options["max_source_length"] == 251
    assert model.options["too_long"] == "refuse"
    assert model.options["split"] is False
