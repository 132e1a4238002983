"""The reference attention compared with the fast one."""

import pytest
import torch
from torch import nn

from transept import ModelConfig, Transformer
from transept.model.attention import MultiHeadAttention, fused_attention, reference_attention
from transept.model.packing import Band, Tokens, visible
from transept.shapes import Tensor

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def random_mask(rows: int, queries: int, keys: int) -> Tensor:
    mask = torch.rand(rows, queries, keys) < 0.6
    mask[:, :, 0] = True
    return mask


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("d_k", "d_v"), [(16, 16), (8, 32), (32, 8)])
def test_fused_attention_matches_equation_1(dtype: torch.dtype, d_k: int, d_v: int) -> None:
    torch.manual_seed(0)
    q = torch.randn(3, 4, 7, d_k, dtype=dtype, requires_grad=True)
    k = torch.randn(3, 4, 9, d_k, dtype=dtype, requires_grad=True)
    v = torch.randn(3, 4, 9, d_v, dtype=dtype, requires_grad=True)
    mask = random_mask(3, 7, 9)
    weight = torch.randn(3, 4, 7, d_v, dtype=dtype)
    results = []
    for attend in (reference_attention, fused_attention):
        out = attend(q, k, v, mask)
        results.append([out, *torch.autograd.grad((out * weight).sum(), (q, k, v))])
    for slow, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_fused_attention_matches_reference_in_bfloat16() -> None:
    # Tiny: a CPU without bfloat16 arithmetic is hundreds of times slower.
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 4, dtype=torch.bfloat16) for _ in range(3))
    mask = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    slow, fast = reference_attention(q, k, v, mask), fused_attention(q, k, v, mask)
    torch.testing.assert_close(fast, slow, atol=TOLERANCE[torch.bfloat16], rtol=0.05)


def test_reference_attention_matches_manual_example() -> None:
    q = torch.tensor([[[[1.0, 0.0]]]])
    k = torch.tensor([[[[2.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]])
    v = torch.tensor([[[[1.0], [2.0], [100.0]]]])
    mask = torch.tensor([[[True, True, False]]])
    score = torch.tensor(2.0 / 2**0.5).exp()
    expected = (score * 1.0 + 1.0 * 2.0) / (score + 1.0)
    torch.testing.assert_close(reference_attention(q, k, v, mask).squeeze(), expected)


def test_multi_head_attention_matches_torch() -> None:
    torch.manual_seed(0)
    ours = MultiHeadAttention(32, 4, 8, 8)
    theirs = nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.w_qkv.weight)
        theirs.out_proj.weight.copy_(ours.w_o.weight)
    layout = Tokens.padded(torch.ones(2, 6, dtype=torch.long), pad_id=0).layout
    x = torch.randn(2, 6, 32)
    mask = visible(layout, layout, Band.causal())
    expected, _ = theirs(x, x, x, attn_mask=~mask[0])
    actual = ours(x.flatten(0, 1), None, layout, layout, mask)
    torch.testing.assert_close(actual.unflatten(0, (2, 6)), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_network_output_is_same_with_reference_and_fused_attention(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    config = ModelConfig.preset("tiny", vocab_size=50, d_k=24, d_v=40, encoder_window=4)
    slow = Transformer(config, attend=reference_attention).to(dtype).eval()
    fast = Transformer(config, attend=fused_attention).to(dtype).eval()
    fast.load_state_dict(slow.state_dict())
    source = torch.tensor([[5, 6, 7, 8, 1], [9, 1, 0, 0, 0]])
    target = torch.tensor([[7, 1, 0], [5, 6, 1]])
    real = target != 0
    expected, actual = slow(source, target)[real], fast(source, target)[real]
    torch.testing.assert_close(actual, expected, atol=10 * TOLERANCE[dtype], rtol=1e-5)


def test_attention_dropout_keeps_the_mean() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 4, 8), torch.randn(1, 1, 200, 8)
    v, mask = torch.ones(1, 1, 200, 1), torch.ones(1, 4, 200, dtype=torch.bool)
    for attend in (reference_attention, fused_attention):
        means = torch.stack([attend(q, k, v, mask, 0.4) for _ in range(300)]).mean(0)
        torch.testing.assert_close(means, torch.ones_like(means), atol=0.05, rtol=0)
