"""The fast selection of tokens, compared with plain operations."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transept.engines.native import network
from transept.engines.native.network import block_size, largest, likeliest, log_sum_


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 5_000), st.integers(1, 12), st.integers(0, 1_000))
def test_largest_matches_topk(n_rows: int, vocab_size: int, k: int, seed: int) -> None:
    x = torch.randn(n_rows, vocab_size, generator=torch.Generator().manual_seed(seed))
    x[:, 0] = -torch.inf
    values, indices = largest(x, k)
    expected = x.topk(min(k, vocab_size), dim=1)
    assert torch.equal(values, expected.values)
    assert torch.equal(x.gather(1, indices), values)
    assert all(len(set(row)) == len(row) for row in indices.tolist())


def test_largest_handles_blocks_of_minus_infinity() -> None:
    x = torch.full((3, 640), -torch.inf)
    x[0, 639], x[0, 3], x[1, 64] = 1.0, 2.0, 5.0
    values, indices = largest(x, 2)
    assert values.tolist() == [[2.0, 1.0], [5.0, -math.inf], [-math.inf, -math.inf]]
    assert indices[0].tolist() == [3, 639]
    assert indices[1, 0] == 64


def test_block_size_divides_vocabulary() -> None:
    assert block_size(37_000) == 74
    assert block_size(8_000) == 64
    assert block_size(37_003) == 37_003  # a prime


@pytest.mark.parametrize("nats", [1.0, math.log(2)])
def test_log_sum_matches_logsumexp(nats: float) -> None:
    x = 30 * torch.randn(5, 400)
    x[:, 7] = -torch.inf
    expected = (x * nats).logsumexp(dim=1, keepdim=True) / nats
    torch.testing.assert_close(log_sum_(x, x.amax(1, keepdim=True), nats), expected)


@pytest.mark.parametrize("nats", [1.0, math.log(2)])
@pytest.mark.parametrize("limit", [0, 2**16])
def test_likeliest_matches_log_softmax_topk(
    nats: float, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blockwise and the plain path give the same tokens and log p."""
    monkeypatch.setattr(network, "BLOCKWISE_LOGITS", limit)
    logits = 10 * torch.randn(5, 640)
    logits[:, 7] = -torch.inf
    expected = (logits * nats).log_softmax(dim=1).topk(8, dim=1)
    log_p, token = likeliest(logits, 8, nats)
    torch.testing.assert_close(log_p, expected.values)
    assert torch.equal(token, expected.indices)
