"""A matrix in each of its layouts, and a model prepared once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.model.prepared import AsItLies, MakeMatrix, Packed, Transposed, prepare


@pytest.mark.parametrize("make", [AsItLies, Transposed, Packed])
@pytest.mark.parametrize("has_bias", [False, True])
def test_the_layouts_give_the_same(make: MakeMatrix, has_bias: bool) -> None:
    weight, x, y = torch.randn(24, 16), torch.randn(4, 16), torch.randn(4, 24)
    bias = torch.randn(24) if has_bias else None
    expected = x @ weight.T + (0 if bias is None else bias)
    matrix = make(weight, bias)
    torch.testing.assert_close(matrix(x), expected)
    out = torch.full_like(y, torch.nan)
    matrix.into(out, x)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(matrix.onto(y.clone(), x), y + expected)


def test_threads_that_begin_together_prepare_a_model_once() -> None:
    config = ModelConfig(vocab_size=30, n_layers=2, d_model=64, d_ff=128, n_heads=2)
    model, n_threads = Transformer(config).eval(), 8
    together = Barrier(n_threads)

    def parts(_: int) -> tuple[object, ...]:
        together.wait()
        prepared = prepare(model)
        return prepared, prepared.decoder(4), prepared.encoder_layers(), prepared.source_kv()

    with ThreadPoolExecutor(n_threads) as threads:
        first, *others = threads.map(parts, range(n_threads))
    assert all(one is other for found in others for one, other in zip(first, found, strict=True))
