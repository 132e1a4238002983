"""The native engine in 8-bit integers, compared with single precision and with other batches."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tests.integration.workshop import run

import transept
from transept.api.transducer import Transducer
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis
from transept.engines.choice import choose
from transept.engines.native import engine
from transept.engines.native.calibration import IntegerPlan, uses_of
from transept.engines.native.engine import NativeEngine
from transept.engines.native.integers import WAYS, is_exact
from transept.engines.native.network import IncrementalDecoder, encode
from transept.engines.native.weights import prepare
from transept.errors import ConfigError
from transept.model.packing import pad_rows
from transept.model.transformer import Transformer
from transept.progress import no_progress
from transept.shapes import Tensor
from transept.text.tokenizer import EOS_ID

EXACT = [way for way in WAYS if is_exact(way)]
pytestmark = pytest.mark.skipif(not EXACT, reason="no product of integers on this machine")
# The model is certain of every token of their translations. Rounding would decide near ties.
SENTENCES = [
    "Good morning.",
    "The cat sleeps on the sofa.",
    "I would like a cup of tea.",
    "Her handwriting is hard to read.",
    "He left the house without saying a word.",
    "The committee will vote on the proposal tomorrow.",
    "Yes.",
    "She has a cold and cannot sing tonight.",
]


def everything(model: Transformer) -> IntegerPlan:
    """Every matrix in integers, in another way from each of several numbers of rows."""
    ways = tuple(zip((1, 3, 9, 20), itertools.cycle(EXACT)))
    return IntegerPlan(frozenset((use.part, use.shape, ways) for use in uses_of(model)))


@pytest.fixture(scope="module")
def loaded() -> Transducer:
    return transept.load("en-de", device="cpu", engine="native")


@pytest.fixture(scope="module")
def inputs(loaded: Transducer) -> list[Input]:
    encoded = [[*loaded.source_tokenizer.encode(text), EOS_ID] for text in SENTENCES]
    return [Input(ids, 2 * len(ids)) for ids in encoded]


@pytest.fixture
def int8(loaded: Transducer, monkeypatch: pytest.MonkeyPatch) -> NativeEngine:
    monkeypatch.setattr(engine, "calibrated", everything)
    return NativeEngine([loaded.model], int8=True)


def best(
    of: NativeEngine, inputs: Sequence[Input], beam_size: int, at_once: int
) -> list[Hypothesis]:
    config = SearchConfig(beam_size=beam_size)
    batches = [inputs[first : first + at_once] for first in range(0, len(inputs), at_once)]
    return [found[0] for batch in batches for found in of.search(batch, config, no_progress)]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_output_does_not_depend_on_batch(
    int8: NativeEngine, inputs: list[Input], beam_size: int
) -> None:
    together = best(int8, inputs, beam_size, at_once=len(inputs))
    for at_once in (1, 3):
        found = best(int8, inputs[::-1], beam_size, at_once)[::-1]
        assert [one.ids for one in found] == [one.ids for one in together]
        for one, other in zip(found, together, strict=True):
            # Sums in single precision depend on the batch, and the last bit may change a rounding.
            assert one.log_probability == pytest.approx(other.log_probability, abs=0.2)


def log_p(
    model: Transformer, one: Input, output: Sequence[int], plan: IntegerPlan | None
) -> Tensor:
    """The log-probability of each token of an output."""
    with torch.inference_mode():
        step = IncrementalDecoder(model, encode(model, pad_rows([one.source], 0), plan), None, plan)
        previous = [None, *(torch.tensor([token]) for token in output[:-1])]
        found = [step(token)[0] for token in previous]
    return torch.stack([row[token] for row, token in zip(found, output, strict=True)])


def test_log_p_is_close_to_single_precision(loaded: Transducer, inputs: list[Input]) -> None:
    model, plan = loaded.model, everything(loaded.model)
    outputs = best(NativeEngine([model]), inputs, beam_size=1, at_once=len(inputs))
    drift = torch.cat([
        log_p(model, one, found.ids, plan) - log_p(model, one, found.ids, None)
        for one, found in zip(inputs, outputs, strict=True)
    ])  # fmt: skip
    assert drift.abs().max() < 0.3
    assert 0 < drift.abs().mean() < 0.03
    assert drift.mean().abs() < 0.02


def test_most_outputs_equal_those_in_single_precision(
    loaded: Transducer, int8: NativeEngine, inputs: list[Input]
) -> None:
    exact = best(NativeEngine([loaded.model]), inputs, beam_size=4, at_once=8)
    found = best(int8, inputs, beam_size=4, at_once=8)
    same = sum(one.ids == other.ids for one, other in zip(found, exact, strict=True))
    assert same >= len(inputs) - 2


def test_command_translates_in_integers_and_keeps_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["translate", "--model", "en-de", "--device", "cpu", "Good morning."]
    assert run(*words, "--engine", "native-int8") == 0
    assert capsys.readouterr().out == "Guten Morgen.\n"
    assert (tmp_path / "transept" / "products.json").exists()


def test_preparing_both_precisions_keeps_both(loaded: Transducer) -> None:
    plan = everything(loaded.model)
    single, integers = prepare(loaded.model), prepare(loaded.model, plan)
    assert prepare(loaded.model) is single is not integers
    assert prepare(loaded.model, everything(loaded.model)) is integers


def test_engine_is_chosen_by_name_on_a_cpu_only(
    loaded: Transducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
    monkeypatch.setattr(engine, "calibrated", lambda model: IntegerPlan(frozenset()))
    found = choose("native-int8", [loaded.model], tokenizers, ["int8"])
    assert found.name == "native-int8"
    with torch.device("meta"):
        elsewhere = Transformer(loaded.model.config)
    with pytest.raises(ConfigError, match="native-int8 is supported on the CPU, not on meta"):
        choose("native-int8", [elsewhere], tokenizers, ["int8"])
