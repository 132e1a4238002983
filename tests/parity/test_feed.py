"""A search for sentences that arrive one by one, compared with a search for all at once.

`test_fused_search` tests the search on a GPU, which admits sentences while others are running.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from itertools import cycle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transept import ModelConfig, Transformer
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Engine, Input
from transept.decoding.step import Hypothesis, Partial
from transept.engines.ctranslate2 import CTranslate2Engine
from transept.engines.native.engine import NativeEngine
from transept.formats import ctranslate2_writer as export
from transept.formats.ctranslate2_writer import Names
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID

VOCABULARY = 40
PLANS = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


def model_with(seed: int, end: float = 4.0) -> Transformer:
    """A small network. The bias of its end symbol makes some outputs end and others not."""
    torch.manual_seed(seed)
    config = ModelConfig(
        vocab_size=VOCABULARY, n_layers=1, d_model=32, d_ff=64, n_heads=2, output_bias=True
    )
    model = Transformer(config).eval()
    with torch.no_grad():
        model.projection.weight.mul_(3)
        model.projection.bias[EOS_ID] = end
    return model


def inputs_of(seed: int, n: int) -> list[Input]:
    rng = random.Random(seed)
    sources = [[*rng.choices(range(4, VOCABULARY), k=rng.randint(0, 9)), EOS_ID] for _ in range(n)]
    return [Input(source, rng.randint(1, 12)) for source in sources]


def fed(
    engine: Engine, inputs: Sequence[Input], config: SearchConfig, plan: Sequence[int]
) -> list[list[Hypothesis]]:
    """The outputs if the feed returns at most this many sentences per call."""
    waiting, numbers = deque(inputs), cycle(plan)
    found: dict[int, list[Hypothesis]] = {}

    def feed(n: int) -> list[Input]:
        return [waiting.popleft() for _ in range(min(n, next(numbers), len(waiting)))]

    while waiting:
        n_before = len(found)
        for done in engine.search_feed(feed, config):
            assert done, "an empty result was yielded"
            for number, outputs in done:
                assert n_before + number not in found, "a sentence was yielded twice"
                found[n_before + number] = outputs
        assert sorted(found) == list(range(len(inputs) - len(waiting))), (
            "it must end with all sentences done"
        )
    return [found[number] for number in range(len(inputs))]


def assert_same(
    ours: Sequence[Sequence[Hypothesis]], theirs: Sequence[Sequence[Hypothesis]]
) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert [one.ids for one in mine] == [one.ids for one in other]
        assert [one.finished for one in mine] == [one.finished for one in other]
        scores = [one.score for one in other]
        assert [one.score for one in mine] == pytest.approx(scores, abs=1e-4)


@pytest.fixture(params=[2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))])
def threads(request: pytest.FixtureRequest) -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads")
def test_search_feed_matches_search_for_any_arrival_order() -> None:
    engine, inputs = NativeEngine([model_with(1)]), inputs_of(1, 14)

    @settings(max_examples=15)
    @given(order=st.permutations(range(len(inputs))), plan=PLANS, width=st.sampled_from([1, 3]))
    def check(order: list[int], plan: list[int], width: int) -> None:
        config = SearchConfig(beam_size=width, n_best=width)
        expected = engine.search(inputs, config, no_progress)
        found = fed(engine, [inputs[index] for index in order], config, plan)
        assert_same(found, [expected[index] for index in order])

    check()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("width", [1, 3])
def test_drafts_of_a_batch_equal_those_of_a_stream(width: int) -> None:
    engine, inputs = NativeEngine([model_with(1)]), inputs_of(1, 14)
    config, waiting = SearchConfig(beam_size=width, n_best=width), deque([inputs[:9], inputs[9:]])
    seen: dict[int, list[Partial]] = {number: [] for number in range(len(inputs))}

    def drafts(number: int, partial: Callable[[], Partial]) -> None:
        seen[number].append(partial())

    def feed(n: int) -> list[Input]:
        return waiting.popleft() if n and waiting else []

    found = dict(pair for done in engine.search_feed(feed, config, drafts) for pair in done)
    for number, one in enumerate(inputs):
        *partials, last = engine.stream(one, config)
        assert [each.ids for each in seen[number]] == [each.ids for each in partials]
        assert [each.stable for each in seen[number]] == [each.stable for each in partials]
        assert_same([found[number]], [[*last.outputs]])


@pytest.mark.skipif(not export.is_installed(), reason="CTranslate2 is not installed")
def test_ctranslate2_search_feed_matches_search() -> None:
    model = model_with(3)
    names = [f"t{index}" for index in range(VOCABULARY)]
    engine = CTranslate2Engine(model, Names(names, names), NativeEngine([model]))
    inputs = [one for one in inputs_of(3, 12) if len(one.source) > 1]
    inputs[4] = inputs[4]._replace(prefix=[7])
    config = SearchConfig()
    assert_same(fed(engine, inputs, config, [2, 0, 3]), engine.search(inputs, config, no_progress))


def test_feed_exception_stops_search() -> None:
    engine, asked = NativeEngine([model_with(1, end=-100.0)]), list[int]()

    def feed(n: int) -> list[Input]:
        asked.append(n)
        if len(asked) == 4:
            raise InterruptedError
        return [Input([5, EOS_ID], 400)] if n else []

    with pytest.raises(InterruptedError):
        list(engine.search_feed(feed, SearchConfig()))
    assert asked[1:] == [0, 0, 0], "it is asked at every token"
