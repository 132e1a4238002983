from typing import Any

import pytest

from transept import ModelConfig, Transformer
from transept.errors import ConfigError


def test_head_widths_default_to_d_model_over_n_heads() -> None:
    assert ModelConfig(vocab_size=10, d_model=128, n_heads=4).d_k == 32
    given = ModelConfig(vocab_size=10, d_model=512, n_heads=7, d_k=16, d_v=48)
    assert (given.d_k, given.d_v) == (16, 48)


def test_preset_accepts_vocab_size_and_changes() -> None:
    config = ModelConfig.preset("big", vocab_size=32_000, dropout=0.1)
    assert (config.vocab_size, config.d_model, config.dropout) == (32_000, 1024, 0.1)


@pytest.mark.parametrize(
    ("preset", "changes", "widths"),
    [
        ("base", {"n_heads": 16}, (32, 32)),
        ("base", {"d_model": 256}, (32, 32)),
        ("base", {"n_heads": 16, "d_k": 64}, (64, 32)),
        ("A-h4", {"n_heads": 16}, (32, 32)),
        ("B-dk16", {"n_heads": 16}, (16, 32)),
        ("base", {"dropout": 0.2}, (64, 64)),
    ],
)
def test_preset_recomputes_head_widths_when_n_heads_changes(
    preset: str, changes: dict[str, Any], widths: tuple[int, int]
) -> None:
    config = ModelConfig.preset(preset, **changes)
    assert (config.d_k, config.d_v) == widths


def test_unknown_preset_error_suggests_closest_name() -> None:
    with pytest.raises(ConfigError, match=r"unknown preset 'A-h3'; did you mean 'A-h32'\?"):
        ModelConfig.preset("A-h3")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"d_model": 511, "d_k": 64, "d_v": 64}, "d_model: 511 must be even"),
        ({"n_heads": 0}, "n_heads: 0 must be at least 1"),
        ({"n_heads": 7}, "n_heads: 7 does not divide d_model = 512"),
        ({"dropout": 1.0}, "dropout: 1.0 must be at least 0 and less than 1"),
        ({"encoder_window": 0}, "encoder_window: 0 must be at least 1, or left out"),
        ({"source_vocab_size": 50}, "source_vocab_size: 50 differs from vocab_size"),
        ({"source_vocab_size": -1}, "source_vocab_size: -1 must be at least 0"),
        ({"pad_id": 100}, "pad_id: 100 is not an id of a vocabulary of 100"),
        ({"decoder_start": "token", "bos_id": 100}, "bos_id: 100 is not an id of a vocabulary"),
        ({"vocab_size": -1}, "vocab_size: -1 must be at least 0"),
    ],
)
def test_invalid_dimensions_are_rejected(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        ModelConfig(**{"vocab_size": 100} | changes)
    assert complaint in str(error.value)


def test_error_lists_all_problems() -> None:
    with pytest.raises(ConfigError) as error:
        ModelConfig(vocab_size=100, d_model=511, n_heads=0, n_layers=0, dropout=-0.1)
    keys = {problem.key for problem in error.value.problems}
    assert keys == {"d_model", "n_heads", "n_layers", "dropout"}


def test_vocabulary_size_0_is_taken_from_corpus() -> None:
    config = ModelConfig(vocab_size=0, source_vocab_size=0, tied_embeddings="two-way")
    assert not config.sized
    sized = config.with_vocabularies(source=300, target=20)
    assert (sized.source_vocab_size, sized.vocab_size, sized.sized) == (300, 20, True)
    assert sized.with_vocabularies(source=1, target=2) == sized
    joint = ModelConfig(vocab_size=0).with_vocabularies(source=300, target=300)
    assert (joint.source_vocab_size, joint.vocab_size) == (None, 300)
    with pytest.raises(ConfigError, match="differs from vocab_size = 20"):
        ModelConfig(vocab_size=0, source_vocab_size=0).with_vocabularies(source=300, target=20)
    with pytest.raises(ConfigError, match="vocab_size: 0 takes the size from a corpus"):
        Transformer(config)
