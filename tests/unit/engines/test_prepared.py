"""Preparing the weights of a model for inference."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.engines.native.weights import prepare
from transept.errors import ConfigError
from transept.model.attention import (
    fused_attention,
    record_attention,
    reference_attention,
)
from transept.shapes import Tensor


def test_concurrent_threads_prepare_model_once() -> None:
    config = ModelConfig(vocab_size=30, n_layers=2, d_model=64, d_ff=128, n_heads=2)
    model, n_threads = Transformer(config).eval(), 8
    barrier = Barrier(n_threads)

    def parts(_: int) -> tuple[object, ...]:
        barrier.wait()
        prepared = prepare(model)
        return prepared, prepared.decoder(4), prepared.encoder_layers(), prepared.source_kv()

    with ThreadPoolExecutor(n_threads) as threads:
        first, *others = threads.map(parts, range(n_threads))
    assert all(one is other for found in others for one, other in zip(first, found, strict=True))


def hard_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dropout: float = 0.0) -> Tensor:
    """Each query takes the value with the highest score."""
    scores = (q @ k.transpose(-2, -1)).masked_fill(~mask[:, None], -torch.inf)
    chosen = torch.nn.functional.one_hot(scores.argmax(-1), k.shape[-2])
    return chosen.to(v) @ v


def test_network_with_custom_attention_is_rejected() -> None:
    config = ModelConfig(vocab_size=30, n_layers=1, d_model=16, d_ff=16, n_heads=2)
    for attend in (reference_attention, fused_attention):
        prepare(Transformer(config, attend=attend))
    network = Transformer(config, attend=hard_attention)
    ids = torch.tensor([[5, 6, 1]])
    assert network(ids, ids).isfinite().all()
    rejected = r"layers\.0\.self_attention: uses the custom attention hard_attention"
    with pytest.raises(ConfigError, match=rejected):
        prepare(network)
    with pytest.raises(ConfigError, match=rejected), record_attention(network):
        pass
