"""Properties of the network, for any sentence, batch and variant."""

import random
from functools import cache
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transept import ModelConfig, Transformer
from transept.model.packing import Tokens
from transept.shapes import Tensor

VOCABULARY = 19


def assert_equal_enough(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


sentence = st.lists(st.integers(4, VOCABULARY - 1), min_size=1, max_size=9)
pair = st.tuples(sentence, sentence)
variants = st.sampled_from(
    [
        {},
        {"norm": "pre", "positions": "learned"},
        {"encoder_window": 3, "decoder_window": 2},
        {"d_k": 5, "d_v": 9, "decoder_start": "token"},
    ]
)


@cache
def _model(changes: tuple[tuple[str, Any], ...]) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=VOCABULARY, n_layers=2, d_model=16, d_ff=32, n_heads=2, **dict(changes)
    )
    return Transformer(config).eval()


def model(changes: dict[str, Any]) -> Transformer:
    return _model(tuple(changes.items()))


def pad(sentences: list[list[int]], extra: int = 0) -> Tensor:
    width = max(map(len, sentences)) + extra
    return torch.tensor([s + [0] * (width - len(s)) for s in sentences])


def pack(sentences: list[list[int]]) -> Tokens:
    return Tokens.padded(pad(sentences), pad_id=0).without_padding()


def alone(network: Transformer, source: list[int], target: list[int]) -> Tensor:
    logits: Tensor = network(torch.tensor([source]), torch.tensor([target]))
    return logits[0]


@settings(max_examples=40)
@given(variants, pair, st.data())
def test_later_target_token_does_not_change_earlier_logits(
    variant: dict[str, Any], pair: tuple[list[int], list[int]], data: st.DataObject
) -> None:
    source, target = pair
    at = data.draw(st.integers(0, len(target) - 1))
    changed = [*target[:at], *data.draw(sentence)]
    network = model(variant)
    with torch.no_grad():
        before, after = alone(network, source, target), alone(network, source, changed)
    # Position `at` is still predicted from the previous tokens.
    assert_equal_enough(before[: at + 1], after[: at + 1])


@settings(max_examples=40)
@given(variants, st.lists(pair, min_size=1, max_size=5), st.integers(0, 4), st.randoms())
def test_logits_do_not_depend_on_batch_padding_or_packing(
    variant: dict[str, Any],
    pairs: list[tuple[list[int], list[int]]],
    extra: int,
    chance: random.Random,
) -> None:
    network = model(variant)
    order = list(range(len(pairs)))
    chance.shuffle(order)
    sources, targets = [p[0] for p in pairs], [p[1] for p in pairs]
    with torch.no_grad():
        expected = [alone(network, source, target) for source, target in pairs]
        padded = network(pad(sources, extra), pad(targets, extra))
        packed = network.decode(
            pack([targets[i] for i in order]), network.encode(pack([sources[i] for i in order]))
        )
    for i, logits in enumerate(expected):
        assert_equal_enough(padded[i, : len(targets[i])], logits)
    flat = torch.cat([expected[i] for i in order])
    assert_equal_enough(packed, flat)


def tile(sentences: list[list[int]], tile: int) -> tuple[Tensor, Tensor, Tensor]:
    """Two tiles per sentence: ids, segments and positions, with padding in between."""
    rows: list[list[tuple[int, int, int]]] = []
    for number, sentence in enumerate(sentences, start=1):
        slots = [(token, number, position) for position, token in enumerate(sentence)]
        slots += [(0, 0, 0)] * (2 * tile - len(slots))
        rows += [slots[:tile], slots[tile:]]
    ids, segments, positions = torch.tensor(rows).unbind(-1)
    return ids, segments, positions


@settings(max_examples=30)
@given(variants, st.lists(pair, min_size=1, max_size=4))
def test_tiles_with_and_without_padding_give_same_logits(
    variant: dict[str, Any], pairs: list[tuple[list[int], list[int]]]
) -> None:
    network = model(variant)
    source, target = (
        Tokens.tiled(*tile([pair[side] for pair in pairs], 5), row_tiles=2) for side in (0, 1)
    )
    with torch.no_grad():
        expected = torch.cat([alone(network, *pair) for pair in pairs])
        tiled = network.decode(target, network.encode(source))[target.ids != 0]
        bare = network.encode(source.without_padding())
        compact = network.decode(target.without_padding(), bare)
    assert_equal_enough(tiled, expected)
    assert_equal_enough(compact, expected)


@settings(max_examples=30)
@given(pair, st.integers(1, 12), st.sampled_from(["encoder", "decoder"]))
def test_restricted_attention_equals_dense_attention_with_band_mask(
    pair: tuple[list[int], list[int]], r: int, stack: str
) -> None:
    """Compared with an unrestricted network that gets a manually built mask."""
    restricted, dense = model({f"{stack}_window": r}), Transformer(model({}).config).eval()
    dense.load_state_dict(restricted.state_dict())
    source, target = pair
    length = len(source) if stack == "encoder" else len(target)
    i, j = torch.arange(length)[:, None], torch.arange(length)[None, :]
    if stack == "encoder":
        band = (j - i >= -((r - 1) // 2)) & (j - i <= r // 2)
    else:
        band = (j <= i) & (j > i - r)
    for layer in getattr(dense, stack).layers:
        attend = layer.self_attention.attend
        layer.self_attention.attend = lambda q, k, v, mask, p, attend=attend: attend(
            q, k, v, band[None], p
        )
    with torch.no_grad():
        assert_equal_enough(alone(restricted, source, target), alone(dense, source, target))


def test_window_of_sentence_length_changes_nothing() -> None:
    free, wide = model({}), model({"encoder_window": 41, "decoder_window": 20})
    source, target = [5, 6, 7, 8, 9, 1], [10, 11, 12, 1]
    with torch.no_grad():
        assert_equal_enough(alone(free, source, target), alone(wide, source, target))


def test_narrow_window_changes_logits() -> None:
    network = model({"encoder_window": 1, "decoder_window": 1})
    with torch.no_grad():
        network.eval()
        memory = network.encode(torch.tensor([[5, 6, 7, 1]])).states
        other = network.encode(torch.tensor([[5, 6, 8, 1]])).states
    assert torch.equal(memory[[0, 1, 3]], other[[0, 1, 3]])
    assert not torch.equal(memory[2], other[2])
