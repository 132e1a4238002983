"""The defaults are those of the paper."""

from pathlib import Path

from transept import ModelConfig, config
from transept.api.config import TranslationConfig
from transept.api.parses import ParseConfig
from transept.data.config import BatchConfig
from transept.decoding.config import SearchConfig
from transept.experiment import Experiment
from transept.model.layers import LAYER_NORM_EPSILON
from transept.training.config import CheckpointConfig

CONFIGS = Path(__file__).parents[2] / "configs"


def test_batch_defaults_match_section_5_1() -> None:
    batches = BatchConfig()
    assert (batches.source_tokens, batches.target_tokens) == (25_000, 25_000)


def test_search_defaults_match_section_6_1() -> None:
    for search in (SearchConfig(), TranslationConfig()):
        assert (search.beam_size, search.length_penalty) == (4, 0.6)
        assert search.max_length(20) == 70


def test_parsing_defaults_match_section_6_3() -> None:
    search = ParseConfig()
    assert (search.beam_size, search.length_penalty) == (21, 0.3)
    assert search.max_length(20) == 320


def test_checkpoint_defaults_match_section_6_1() -> None:
    kept = CheckpointConfig()
    assert kept.keep == 5
    # None means ten minutes, or the same share of a shorter run.
    assert kept.every_minutes is None


def test_big_config_keeps_20_checkpoints() -> None:
    assert config.load(Experiment, CONFIGS / "big.toml").checkpoint.keep == 20


def test_big_french_config_has_lower_dropout() -> None:
    french = ModelConfig.preset("big", vocab_size=32_000, dropout=0.1)
    assert (french.d_model, french.dropout, french.vocab_size) == (1024, 0.1, 32_000)


def test_defaults_not_in_paper_are_pinned() -> None:
    base = ModelConfig.preset("base")
    assert (base.attention_dropout, base.activation_dropout) == (0.0, 0.0)
    assert not base.attention_bias
    assert LAYER_NORM_EPSILON == 1e-5
