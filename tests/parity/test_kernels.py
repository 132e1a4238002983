"""Each kernel compared with plain PyTorch in double precision, on ragged batches.

Without a GPU, they run in Triton's interpreter, slowly.
"""

import pytest
import torch

pytest.importorskip("triton")

from torch.nn import functional as F

from transept.engines.kernels import LONGEST
from transept.engines.kernels.attention import (
    AttentionSpec,
    TokenSide,
    attend,
    attend_backward,
    spans,
)
from transept.engines.kernels.logits import cross_entropy
from transept.engines.kernels.pointwise import (
    Drop,
    add_norm,
    add_norm_backward,
    embed,
    embed_backward,
    relu_backward,
)
from transept.model.attention import attention_weights
from transept.runtime.determinism import order_of
from transept.shapes import Tensor
from transept.training.loss import reference_loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The interpreter uses numpy, which does not support bfloat16.
DTYPES = [torch.float32, torch.bfloat16] if DEVICE == "cuda" else [torch.float32]
TOLERANCE = {torch.float32: 2e-3 if DEVICE == "cuda" else 1e-5, torch.bfloat16: 1e-2}


def error(actual: Tensor, expected: Tensor) -> float:
    assert actual.isfinite().all()
    expected = expected.detach()
    return float((actual.double() - expected).norm() / expected.norm().clamp(min=1e-12))


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, device=DEVICE).to(dtype)


def token_side(lengths: list[list[int]], width: int) -> TokenSide:
    """Rows of sentences of these lengths, with padding at the end of each row."""
    segments = torch.zeros(len(lengths), width, dtype=torch.int64)
    positions = torch.zeros_like(segments)
    number = 0
    for row, sentences in enumerate(lengths):
        at = 0
        for length in sentences:
            number += 1
            segments[row, at : at + length] = number
            positions[row, at : at + length] = torch.arange(length)
            at += length
    return TokenSide(segments.flatten().to(DEVICE), positions.flatten().to(DEVICE))


TILE = 32
QUERIES = [[64], [1, 31, 20, 10], [32, 32], [5, 20, 3, 1, 30]]
KEYS = [[50], [31, 1, 20, 12], [1, 40], [10, 8, 14, 20, 12]]


def spec(
    queries: TokenSide, keys: TokenSide, before: int | None, after: int | None
) -> AttentionSpec:
    both = (queries.segments, keys.segments)
    return AttentionSpec(queries, keys, spans(both, TILE, 2), TILE, before, after)


def mixed(x: Tensor) -> Tensor:
    """The finalizer of MurmurHash3 on 32-bit numbers, stored in 64 bits."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = ((x ^ (x >> shift)) * factor) & 0xFFFFFFFF
    return x ^ (x >> 16)


def kept_weights(drop: Drop, whole: AttentionSpec, n_heads: int) -> Tensor:
    """Which weights a dropout keeps, (H, N, N): the hash of the kernels in PyTorch."""
    low, high = (drop.seed.long() & 0xFFFFFFFF).tolist()
    heads = torch.arange(1, n_heads + 1, device=DEVICE)
    key = mixed((low + (drop.site + heads * 65536) * 65521) & 0xFFFFFFFF)[:, None, None]
    rows = torch.arange(len(whole.queries.segments), device=DEVICE)
    index = rows[:, None] * LONGEST + whole.keys.positions[None, :]
    bits = mixed((mixed(index[None] ^ key) + high) & 0xFFFFFFFF)
    return (bits >> 8) >= drop.p * (1 << 24)


def mask_of(whole: AttentionSpec) -> Tensor:
    queries, keys = whole.queries, whole.keys
    mask = queries.segments[:, None] == keys.segments[None, :]
    distance = keys.positions[None, :] - queries.positions[:, None]
    if whole.before is not None:
        mask &= distance >= -whole.before
    if whole.after is not None:
        mask &= distance <= whole.after
    return mask & (queries.segments > 0)[:, None]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("kind", "before", "after", "p"),
    [
        pytest.param("self", None, None, 0.0, marks=pytest.mark.slow),
        pytest.param("self", None, 0, 0.0, marks=pytest.mark.slow),
        ("self", 3, 4, 0.0),
        pytest.param("self", 7, 0, 0.0, marks=pytest.mark.slow),
        pytest.param("cross", None, None, 0.0, marks=pytest.mark.slow),
        ("self", None, 0, 0.3),
        ("cross", None, None, 0.3),
    ],
)
def test_attention_kernel_and_gradients_match_reference(
    kind: str, before: int | None, after: int | None, p: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    h, d_k, d_v = 2, 16, 32
    queries = token_side(QUERIES, 2 * TILE)
    keys = queries if kind == "self" else token_side(KEYS, 2 * TILE)
    whole = spec(queries, keys, before, after)
    n = len(queries.segments)
    # As in the network, q, k and v are columns of one matrix.
    qkv = randn(n, h * (2 * d_k + d_v), dtype=dtype)
    q, k, v = qkv.split([h * d_k, h * d_k, h * d_v], dim=1)
    drop = Drop(p, torch.tensor([5, -7], dtype=torch.int32, device=DEVICE), site=3)
    out, log_total = attend(q, k, v, whole, h, drop)
    real = queries.segments > 0
    wide = [
        x.double().view(n, h, -1).transpose(0, 1)[None].detach().requires_grad_() for x in (q, k, v)
    ]
    mask = mask_of(whole)
    seen_somewhere = (mask | ~mask.any(1, keepdim=True))[None]
    weights = attention_weights(wide[0], wide[1], seen_somewhere)
    expected = (weights * kept_weights(drop, whole, h) / (1 - p)) @ wide[2]
    flat = expected[0].transpose(0, 1).flatten(1)
    assert error(out[real], flat[real]) < TOLERANCE[dtype]

    d_out = randn(n, h * d_v, dtype=dtype) * real[:, None]
    flat.backward(d_out.double())
    gradients = torch.full_like(qkv, torch.nan)
    parts = gradients.split([h * d_k, h * d_k, h * d_v], dim=1)
    attend_backward(q, k, v, out, log_total, d_out, whole, drop, parts)
    for actual, leaf in zip(parts, wide, strict=True):
        assert leaf.grad is not None
        assert error(actual, leaf.grad[0].transpose(0, 1).flatten(1)) < 2 * TOLERANCE[dtype]


def dropped_weights(seed: list[int], site: int, p: float) -> Tensor:
    """Which weights of two heads attention keeps, derived from its output: (H, N, N).

    All scores are equal, and the values are the rows of a unit matrix.
    """
    n, h = 64, 2
    one = token_side([[n]], n)
    whole = spec(one, one, None, None)
    zero = torch.zeros(n, h * 16, device=DEVICE)
    drop = Drop(p, torch.tensor(seed, dtype=torch.int32, device=DEVICE), site)
    out, _ = attend(zero, zero, torch.eye(n, device=DEVICE).repeat(1, h), whole, h, drop)
    kept = out > 0
    torch.testing.assert_close(out, kept / (n * (1 - p)))
    return kept.view(n, h, n).transpose(0, 1)


def test_attention_dropout_differs_between_heads_layers_and_steps() -> None:
    p = 0.2
    masks = [
        head
        for seed, site in [([1, 2], 2), ([1, 2], 3), ([2, 2], 2), ([1, 3], 2)]
        for head in dropped_weights(seed, site, p)
    ]
    n = masks[0].numel()
    for i, one in enumerate(masks):
        # Five standard deviations.
        assert abs(float(one.double().mean()) - (1 - p)) < 5 * (p * (1 - p) / n) ** 0.5
        for other in masks[:i]:
            both = float((one & other).double().mean())
            assert abs(both - (1 - p) ** 2) < 5 * (2 * p * (1 - p) / n) ** 0.5


def test_spans_cover_row_only_if_sentence_crosses_tiles() -> None:
    queries, keys = token_side(QUERIES, 2 * TILE), token_side(KEYS, 2 * TILE)
    found = spans((queries.segments, keys.segments), TILE, 2)
    assert found.tolist() == [[0, 2], [0, 2], [2, 3], [3, 4], [4, 6], [4, 6], [6, 8], [6, 8]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", [64, 96])
def test_add_norm_kernel_and_gradients_match_reference(d: int, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    n, p = 37, 0.25
    x, y, d_out = (randn(n, d, dtype=dtype) for _ in range(3))
    weight, bias = randn(d) + 2, randn(d)
    drop = Drop(p, torch.tensor([5, -7], dtype=torch.int32, device=DEVICE), site=3)
    out, saved = add_norm(x, y, weight, bias, 1e-5, drop)
    # With y = 1 and x = 0, the sum is the mask.
    _, ones = add_norm(torch.zeros_like(x), torch.ones_like(x), weight, bias, 1e-5, drop)
    mask = (ones.summed > 0).double() / (1 - p)
    assert 0.6 < float((mask > 0).double().mean()) < 0.9
    leaves = [t.double().requires_grad_() for t in (x, y, weight, bias)]
    expected = F.layer_norm(leaves[0] + leaves[1] * mask, (d,), leaves[2], leaves[3])
    assert error(out, expected) < TOLERANCE[dtype]
    expected.backward(d_out.double())
    sums = torch.ones(3, d, device=DEVICE)
    dx, dy = add_norm_backward(d_out, saved, weight, drop, list(sums))
    sums -= 1
    wanted = [leaf.grad for leaf in leaves]
    for actual, one in zip([dx, dy, *sums[:2]], wanted, strict=True):
        assert one is not None
        assert error(actual, one) < TOLERANCE[dtype]
    assert wanted[1] is not None
    assert error(sums[2], wanted[1].sum(0)) < 2 * TOLERANCE[dtype]


def kept_numbers(seed: list[int], site: int, n: int, p: float) -> Tensor:
    """Which of n elements a dropout keeps."""
    d = 4096
    zero, one = torch.zeros(n // d, d, device=DEVICE), torch.ones(n // d, d, device=DEVICE)
    drop = Drop(p, torch.tensor(seed, dtype=torch.int32, device=DEVICE), site)
    _, saved = add_norm(zero, one, one[0], one[0], 1e-5, drop)
    return saved.summed.flatten() > 0


def test_dropout_hash_is_independent_between_sites_and_seeds() -> None:
    n, p = 1 << 17, 0.1
    masks = [
        kept_numbers(seed, site, n, p)
        for seed, site in [([1, 2], 0), ([1, 2], 1), ([2, 2], 0), ([1, 3], 0)]
    ]
    for one in masks:
        # Six standard deviations.
        assert abs(float(one.double().mean()) - (1 - p)) < 6 * (p * (1 - p) / n) ** 0.5
        shifted = (one[1:] & one[:-1]).double().mean()
        assert abs(float(shifted) - (1 - p) ** 2) < 6 * (2 * p * (1 - p) / n) ** 0.5
    for i, one in enumerate(masks):
        for other in masks[:i]:
            both = float((one & other).double().mean())
            assert abs(both - (1 - p) ** 2) < 6 * (2 * p * (1 - p) / n) ** 0.5


def test_embedding_kernel_and_gradient_match_reference() -> None:
    torch.manual_seed(2)
    v, d, n = 11, 48, 40
    weight = randn(v, d)
    ids = torch.randint(0, v, (n,), device=DEVICE)
    positions = torch.randint(0, 9, (n,), device=DEVICE)
    table = randn(9, d)
    drop = Drop(0.0, torch.zeros(2, dtype=torch.int32, device=DEVICE), 0)
    out = embed(ids, weight, positions, table, d**0.5, 0, drop, torch.float32)
    leaf = weight.double().requires_grad_()
    expected = leaf[ids] * d**0.5 * (ids != 0)[:, None] + table[positions].double()
    assert error(out, expected) < 1e-6
    d_out = randn(n, d)
    expected.backward(d_out.double())
    gradient = torch.zeros_like(weight)
    embed_backward(d_out, ids, gradient, d**0.5, 0, drop)
    assert leaf.grad is not None
    assert error(gradient, leaf.grad) < 1e-5
    with order_of("ordered"):
        ordered = torch.zeros_like(weight)
        embed_backward(d_out, ids, ordered, d**0.5, 0, drop)
    assert error(ordered, leaf.grad) < 1e-5
    dropped = Drop(0.5, drop.seed, 4)
    out = embed(ids, weight, positions, table, d**0.5, 0, dropped, torch.float32)
    zero = out == 0
    assert 0.4 < float(zero.double().mean()) < 0.6
    assert error(out[~zero], 2 * expected[~zero]) < 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
def test_relu_backward_kernel_matches_reference(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    out, d_out = randn(70, 200, dtype=dtype).relu(), randn(70, 200, dtype=dtype)
    expected = d_out.double() * (out > 0)
    d_bias = torch.ones(200, device=DEVICE)
    relu_backward(d_out, out, d_bias)
    assert error(d_out, expected) == 0.0
    assert error(d_bias, 1 + expected.sum(0)) < 1e-5


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_kernel_and_gradient_match_reference(dtype: torch.dtype) -> None:
    torch.manual_seed(4)
    n, v, epsilon = 9, 5000, 0.1
    logits = (5 * randn(n, v)).to(dtype)
    # Far above all others, and not in the first block.
    logits[4, -1] = 500.0
    ids = torch.randint(0, v, (n,), device=DEVICE)
    ids[[2, 7]] = 0
    leaf = logits.double().requires_grad_()
    expected = reference_loss(leaf, ids, label_smoothing=epsilon, pad_id=0)
    expected.backward()
    nll = reference_loss(leaf, ids, label_smoothing=0.0, pad_id=0)
    losses = cross_entropy(logits, ids, epsilon, 0, torch.tensor(0.5, device=DEVICE))
    assert error(losses.sum(0), torch.stack([expected, nll])) < 1e-5
    assert leaf.grad is not None
    assert error(logits, leaf.grad / 2) < TOLERANCE[dtype]
