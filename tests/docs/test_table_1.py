"""Table 1, the rows of self-attention: counted on the masks that the network computes with."""

import pytest
import torch

from transept.model.packing import Band, Tokens, visible
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
