"""Table 1: arithmetic as it is done, and the masks that the network computes with, counted."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transept.model.attention import reference_attention
from transept.model.packing import Band, Blocks, Tokens, self_mask, visible
from transept.shapes import Bool, Tensor


def mask(n: int, band: Band) -> Bool[Tensor, "n n"]:
    layout = Tokens.padded(torch.ones(1, n, dtype=torch.long), pad_id=0).layout
    return visible(layout, layout, band)[0]


def longest_path(sees: Bool[Tensor, "n n"]) -> int:
    """Layers until the first position's word can be known at the last."""
    reached, steps = sees, 1
    while not reached.all():
        reached, steps = (reached.float() @ sees.float()) > 0, steps + 1
    return steps


@pytest.mark.parametrize("n", [16, 64])
@pytest.mark.parametrize("r", [3, 9])
def test_pairs_and_paths_are_table_1s(n: int, r: int) -> None:
    dense, restricted = mask(n, Band()), mask(n, Band.restricted(r))
    assert int(dense.sum()) == n * n
    assert longest_path(dense) == 1
    # r · n, less what lies beyond either end of the sentence.
    beyond = sum(range(1, r // 2 + 1)) * 2
    assert int(restricted.sum()) == r * n - beyond
    # A layer carries a word r // 2 places each way, so the longest path is O(n / r).
    assert longest_path(restricted) == -(-(n - 1) // (r // 2))


def self_attention(n: int, d: int) -> None:
    q, k, v = torch.randn(3, 1, 1, n, d)
    reference_attention(q, k, v, torch.ones(1, n, n, dtype=torch.bool))


def restricted_self_attention(n: int, d: int) -> None:
    layout = Tokens.padded(torch.ones(1, n, dtype=torch.long), pad_id=0).layout
    blocks = self_mask(layout, Band.restricted(8))
    assert isinstance(blocks, Blocks)
    q, k, v = torch.randn(3, 1, 1, n, d)
    blocks.attend(reference_attention, q, k, v)


def recurrent(n: int, d: int) -> None:
    nn.RNN(d, d)(torch.randn(n, d))


def convolutional(n: int, d: int) -> None:
    nn.Conv1d(d, d, 3, padding=1)(torch.randn(1, d, n))


def flops(layer: Callable[[int, int], None], n: int, d: int) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(n, d)
    return int(counter.get_total_flops())


@pytest.mark.parametrize(
    ("layer", "in_n", "in_d"),
    [
        (self_attention, 4, 2),
        (restricted_self_attention, 2, 2),
        (recurrent, 2, 4),
        (convolutional, 2, 4),
    ],
)
def test_arithmetic_grows_as_table_1_says(
    layer: Callable[[int, int], None], in_n: int, in_d: int
) -> None:
    """n²·d, r·n·d, n·d² and k·n·d²: what twice the length and twice the width cost."""
    once = flops(layer, 256, 64)
    assert flops(layer, 512, 64) == in_n * once
    assert flops(layer, 256, 128) == in_d * once
