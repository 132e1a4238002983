"""Which networks the search on a GPU supports, and the reasons for rejecting others."""

from typing import Any

import pytest

from transept import ModelConfig
from transept.engines import choice
from transept.engines.choice import fused_obstacles


def test_fused_search_supports_paper_networks_and_variants() -> None:
    pytest.importorskip("triton")
    assert fused_obstacles(ModelConfig.preset("base")) == []
    assert fused_obstacles(ModelConfig.preset("big")) == []
    every_variant = ModelConfig(
        vocab_size=99, norm="pre", activation="swish", positions="learned", attention_bias=True
    )
    assert fused_obstacles(every_variant) == []


@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        ({"decoder_window": 9}, "model.decoder_window = 9"),
        ({"d_k": 32}, "model.d_k = 32, model.d_v = 64"),
        ({"d_k": 32, "d_v": 32}, "model.n_heads = 8 heads of 32"),
    ],
)
def test_unsupported_network_is_reported_by_config_key(
    change: dict[str, Any], obstacle: str
) -> None:
    pytest.importorskip("triton")
    assert fused_obstacles(ModelConfig(vocab_size=99, **change)) == [obstacle]


def test_missing_triton_is_reported_as_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    assert fused_obstacles(ModelConfig.preset("base")) == ["Triton is not installed"]
