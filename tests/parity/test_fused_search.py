"""Search on the device compared with the reference, token by token.

Without a GPU, the kernels run in Triton's interpreter, slowly.
"""

import random
from collections import deque
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pytest
import torch

pytest.importorskip("triton")

from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis, length_penalty
from transept.engines.choice import choose
from transept.engines.fused import engine as fused_engine
from transept.engines.fused.engine import FusedEngine, FusedSearch
from transept.engines.fused.workspace import Traces
from transept.engines.kernels.beams import DeviceBeams, advance
from transept.engines.kernels.logits import SpecialIds
from transept.engines.native.engine import NativeEngine
from transept.engines.native.network import IncrementalDecoder
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.progress import no_progress
from transept.shapes import Tensor

NO_TOKENIZERS: Any = None
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
N_CASES = 1000 if DEVICE.type == "cuda" else 24
PAD, EOS, START = 0, 1, 0


def assert_same(ours: list[list[Hypothesis]], theirs: list[list[Hypothesis]]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        assert [one.ids for one in mine] == [one.ids for one in other]
        assert [one.finished for one in mine] == [one.finished for one in other]
        for one, two in zip(mine, other, strict=True):
            assert one.log_probability == pytest.approx(two.log_probability, abs=1e-4)
            assert one.score == pytest.approx(two.score, abs=1e-4)


class Recorded:
    """A step whose log p depends on the sentence, the length and the last token."""

    def __init__(self, log_p: Tensor) -> None:
        self._log_p = log_p
        self._sentence = torch.arange(len(log_p))
        self._length = 0

    def __call__(self, tokens: Tensor | None) -> Tensor:
        last = torch.full_like(self._sentence, START) if tokens is None else tokens
        self._length += 1
        return self._log_p[self._sentence, self._length - 1, last]

    def select(self, rows: Tensor) -> None:
        self._sentence = self._sentence[rows]


@pytest.mark.parametrize(
    "width", [3, *(pytest.param(width, marks=pytest.mark.slow) for width in (1, 2, 4, 5))]
)
def test_fused_search_on_recorded_probabilities_matches_reference(width: int) -> None:
    torch.manual_seed(width)
    n, longest, vocab_size = max(1, N_CASES // 5), 6, 9
    logits = 2 * torch.randn(n, longest, vocab_size, vocab_size)
    logits[..., PAD] = -torch.inf
    log_p = logits.log_softmax(dim=-1)
    max_lengths = torch.randint(1, longest + 1, (n,)).tolist()
    alpha = random.Random(width).choice([0.0, 0.6, 1.0])
    config = SearchConfig(beam_size=width, length_penalty=alpha, n_best=width)

    penalties = [length_penalty(length, alpha) for length in range(longest + 1)]
    beams = DeviceBeams.empty(n, width, torch.tensor(penalties, device=DEVICE))
    slots = torch.arange(n, device=DEVICE)
    beams.begin(slots, torch.tensor(max_lengths, device=DEVICE), START)
    given, symbols = log_p.to(DEVICE), SpecialIds(vocab_size, PAD, EOS)
    for _ in range(longest):
        now = given[slots, beams.length.clamp(max=longest - 1).long()]
        advance(beams, now[slots[:, None], beams.token.long()].flatten(0, 1), symbols)
    assert beams.done.all()
    found = Traces.of(beams, list(range(n))).outputs(alpha, width)
    assert_same(found, search(Recorded(log_p), max_lengths, config, EOS))


def model_with(seed: int, vocab_size: int = 40, end: float = 6.0, **variant: Any) -> Transformer:
    """A small network. The bias of its end symbol makes some outputs end and others not."""
    torch.manual_seed(seed)
    sizes = {"n_layers": 1, "d_model": 32, "d_ff": 64, "n_heads": 2} | variant
    config = ModelConfig(vocab_size=vocab_size, output_bias=True, **sizes)
    model = Transformer(config).eval().to(DEVICE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):  # initially zero, which would hide mistakes
                parameter.normal_(std=0.1)
        model.projection.weight.mul_(2)
        model.projection.bias[EOS] = end
    return model


def sentences(seed: int, n: int, vocab_size: int = 40) -> list[list[int]]:
    rng = random.Random(seed)
    return [[*rng.choices(range(2, vocab_size), k=rng.randint(1, 5)), EOS] for _ in range(n)]


def reference(
    model: Transformer, inputs: list[Input], config: SearchConfig
) -> list[list[Hypothesis]]:
    found = []
    for one in inputs:
        with torch.inference_mode():
            source = torch.tensor([one.source], device=DEVICE)
            step = IncrementalDecoder(model, model.encode(source))
            found += search(step, [one.max_length], config, EOS)
    return found


@pytest.mark.parametrize(
    ("width", "n_best", "end"), [(1, 1, 6.0), pytest.param(3, 2, 3.0, marks=pytest.mark.slow)]
)
def test_fused_search_outputs_match_reference(
    width: int, n_best: int, end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fewer slots than sentences: slots are reused, and compacted at the end.
    monkeypatch.setattr(fused_engine, "SLOTS", 4)
    monkeypatch.setattr(fused_engine, "CHECK_EVERY", 2)
    model = model_with(width, end=end)
    inputs = [Input(source, len(source) + 2) for source in sentences(width, 6)]
    config = SearchConfig(beam_size=width, n_best=n_best)
    progress: list[int] = []
    found = FusedSearch(model, torch.float32, EOS)(
        inputs, config, lambda done, _: progress.append(done)
    )
    expected = reference(model, inputs, config)
    assert_same(found, expected)
    assert progress == sorted(progress)
    assert progress[-1] == len(inputs)
    assert {one.finished for (one, *_) in expected} == {True, False}


@pytest.mark.parametrize(
    "variant",
    [
        {"norm": "pre", "n_layers": 2},
        {
            "n_layers": 3,
            "n_decoder_layers": 1,
            "activation": "swish",
            "attention_bias": True,
            "positions": "learned",
            "max_positions": 16,
            "decoder_start": "token",
        },
    ],
)
@pytest.mark.slow
def test_fused_search_with_network_variant_matches_reference(variant: dict[str, Any]) -> None:
    model = model_with(5, end=3.0, **variant)
    inputs = [Input(source, len(source) + 1) for source in sentences(5, 2)]
    config = SearchConfig(beam_size=2)
    found = FusedSearch(model, torch.float32, EOS)(inputs, config)
    assert_same(found, reference(model, inputs, config))


class Waiting:
    """A feed that returns a given number of sentences per call."""

    def __init__(self, inputs: Sequence[Input], plan: Sequence[int]) -> None:
        self.left, self._plan = deque(inputs), cycle(plan)

    def __call__(self, n: int) -> list[Input]:
        return [self.left.popleft() for _ in range(min(n, next(self._plan), len(self.left)))]


def fed(
    engine: FusedEngine, inputs: Sequence[Input], config: SearchConfig, plan: Sequence[int]
) -> list[list[Hypothesis]]:
    """The outputs of an engine for sentences that arrive in groups of this size."""
    feed, found = Waiting(inputs, plan), dict[int, list[Hypothesis]]()
    while feed.left:
        n_before = len(found)
        for done in engine.search_feed(feed, config):
            found |= {n_before + number: outputs for number, outputs in done}
    return [found[number] for number in range(len(inputs))]


def engine_in_single_precision(model: Transformer, monkeypatch: pytest.MonkeyPatch) -> FusedEngine:
    monkeypatch.setattr(fused_engine, "DTYPE", torch.float32)
    return FusedEngine(model, NativeEngine([model]))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [[9], [1, 0, 2]])
def test_later_sentences_get_same_outputs(plan: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    # Steps of one slot and of four. The third sentence is too long for the first workspace, the
    # fifth and sixth are handled by the other engine.
    for name, value in {"SLOTS": 4, "CHECK_EVERY": 2, "MIN_POSITIONS": 8}.items():
        monkeypatch.setattr(fused_engine, name, value)
    model = model_with(3, end=3.0)
    inputs = [Input(source, len(source) + 2) for source in sentences(3, 7)]
    inputs[2], inputs[4] = Input([9, 8, EOS], 9), Input([7, 8, EOS], 4, prefix=[5])
    inputs[5] = Input([7, 8, EOS], 4, required=[[6]])
    config = SearchConfig(beam_size=3, n_best=2)
    engine = engine_in_single_precision(model, monkeypatch)
    found = fed(engine, inputs, config, plan)
    expected = reference(model, inputs, config)
    expected[4:6] = NativeEngine([model]).search(inputs[4:6], config, no_progress)
    assert_same(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("width", [1, 4, 12])
def test_many_later_sentences_get_same_outputs(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_with(7, vocab_size=5000)
    inputs = [
        Input(source, random.Random(i).choice([3, 20, 20, 20, 140]))
        for i, source in enumerate(sentences(3, 400, 5000))
    ]
    config, engine = SearchConfig(beam_size=width), engine_in_single_precision(model, monkeypatch)
    expected = engine.search(inputs, config, no_progress)
    # From one at a time to more than the number of slots, and back.
    for plan in ([1000], [1, 0, 0], [3, 40, 0, 200, 0, 1, 0, 7], [0, 1, 5, 300]):
        for _ in range(2):  # the second time, all graphs are captured
            found = fed(engine, inputs, config, plan)
            same = sum(a[0].ids == b[0].ids for a, b in zip(found, expected, strict=True))
            assert same >= 0.99 * len(inputs)  # another order of sums changes near ties


@pytest.mark.gpu
def test_later_short_sentence_finishes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_with(7, end=-100.0)  # all outputs have the maximum length
    engine = engine_in_single_precision(model, monkeypatch)
    waiting = [[Input([5, EOS], 100)], [], [Input([6, EOS], 5)]]

    def feed(n: int) -> list[Input]:
        return waiting.pop(0) if n and waiting else []

    results = engine.search_feed(feed, SearchConfig())
    assert [number for found in results for number, _ in found] == [1, 0]


@pytest.mark.slow
def test_workspace_is_reused_with_other_length_penalty() -> None:
    model, inputs = model_with(3, end=3.0), [Input([7, 8, EOS], max_length=4)]
    searcher = FusedSearch(model, torch.float32, EOS)
    for alpha in (0.0, 2.0):
        config = SearchConfig(beam_size=2, length_penalty=alpha)
        assert_same(searcher(inputs, config), reference(model, inputs, config))


@pytest.mark.skipif(DEVICE.type != "cuda", reason="many sentences are for a GPU")
@pytest.mark.parametrize("width", [1, 4])
def test_fused_search_of_many_sentences_matches_reference(width: int) -> None:
    model = model_with(7, vocab_size=5000)
    inputs = [
        Input(source, random.Random(i).choice([3, 20, 140]))
        for i, source in enumerate(sentences(3, 600, 5000))
    ]
    config = SearchConfig(beam_size=width)
    searcher = FusedSearch(model, torch.float32, EOS)
    for n in (300, 64, 1, 7):  # workspaces of several sizes share memory
        searcher(inputs[:n], config)
    found = searcher(inputs, config)
    expected = reference(model, inputs, config)
    same = sum(a[0].ids == b[0].ids for a, b in zip(found, expected, strict=True))
    assert same >= 0.99 * len(inputs)  # another order of sums changes near ties
    assert_same(searcher(inputs[::-1], config), found[::-1])


@pytest.mark.gpu
def test_fused_engine_is_chosen_and_uses_fallback() -> None:
    model = model_with(3)
    with torch.no_grad():
        model.projection.weight.mul_(3)  # more confident, so that few outputs are near ties
    engine = choose("auto", [model], NO_TOKENIZERS, ["fp32"])
    native = choose("native", [model], NO_TOKENIZERS, ["fp32"])
    assert engine.name == "fused"
    for width, prefix, required in ((4, [], []), (4, [7, 8], []), (12, [], []), (4, [], [[9, 7]])):
        inputs = [Input(source, 12, prefix, required) for source in sentences(5, 50)]
        config = SearchConfig(beam_size=width)
        found = engine.search(inputs, config, no_progress)
        expected = native.search(inputs, config, no_progress)
        same = sum(a[0].ids == b[0].ids for a, b in zip(found, expected, strict=True))
        assert same >= (50 if width == 12 or prefix or required else 45)
