"""CTranslate2 gives the same outputs as the native engine, and rejects unsupported variants."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from torch import nn

from transept import ModelConfig, Transformer
from transept.api.networks import Networks
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Engine, Input
from transept.decoding.step import Hypothesis
from transept.engines.ctranslate2 import CTranslate2Engine
from transept.engines.native.engine import NativeEngine
from transept.errors import ConfigError
from transept.formats import ctranslate2_writer as export
from transept.formats.ctranslate2_writer import Names
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID

VOCABULARY = 120
NAMES = [f"t{index}" for index in range(VOCABULARY)]
VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "two-way": {"tied_embeddings": "two-way", "source_vocab_size": 80},
    "untied": {"tied_embeddings": "none", "output_bias": True},
    "learned positions": {"positions": "learned", "max_positions": 32},
    "swish, biases": {"activation": "swish", "attention_bias": True},
    "start token": {"decoder_start": "token"},
    "narrow heads": {"d_k": 8, "d_v": 8},
    "short decoder": {"n_decoder_layers": 1},
}


def network(seed: int, end: float = 0.0, **changes: Any) -> Transformer:
    """A network that does not repeat itself; `end` changes the logit of the end symbol."""
    torch.manual_seed(seed)
    settings = {"n_layers": 2, "d_model": 64, "d_ff": 96, "n_heads": 4, **changes}
    settings["output_bias"] = settings.get("output_bias", end != 0)
    model = Transformer(ModelConfig(vocab_size=VOCABULARY, **settings)).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float("norm.weight" in name), std=0.3)
    with torch.no_grad():
        model.target_embedding.weight.mul_(2)
        if end:
            model.projection.bias[EOS_ID] = end
    return model


def sentences(n: int) -> list[list[int]]:
    lengths = [1 + 5 * index % 13 for index in range(n)]
    return [[*torch.randint(4, 80, (length,)).tolist(), EOS_ID] for length in lengths]


def both(model: Transformer) -> tuple[NativeEngine, CTranslate2Engine]:
    native = NativeEngine([model])
    names = Names(NAMES[: len(model.source_embedding.weight)], NAMES)
    return native, CTranslate2Engine(model, names, native)


def found(engine: Engine, sources: list[list[int]], **settings: Any) -> list[list[Hypothesis]]:
    inputs = [Input(source, len(source) + 3) for source in sources]
    return engine.search(inputs, SearchConfig(**settings), no_progress)


def assert_alike(ours: list[list[Hypothesis]], others: list[list[Hypothesis]]) -> None:
    for mine, theirs in zip(ours, others, strict=True):
        assert [(one.ids, one.finished) for one in theirs] == [
            (one.ids, one.finished) for one in mine
        ]
        for one, other in zip(mine, theirs, strict=True):
            assert other.log_probability == pytest.approx(one.log_probability, abs=1e-4)
            assert other.score == pytest.approx(one.score, abs=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_ctranslate2_greedy_outputs_match_native(variant: str) -> None:
    n_finished = 0
    for seed, end in [(1, 0.0), (2, 8.0)]:
        native, theirs = both(network(seed, end, **VARIANTS[variant]))
        sources = sentences(8)
        ours = found(native, sources, beam_size=1)
        assert_alike(ours, found(theirs, sources, beam_size=1))
        n_finished += sum(one.finished for (one,) in ours)
    assert 0 < n_finished < 16  # outputs of both kinds


@pytest.mark.parametrize("variant", VARIANTS)
def test_ctranslate2_beams_match_native_without_end_symbol(variant: str) -> None:
    native, theirs = both(network(3, -30.0, **VARIANTS[variant]))
    sources = sentences(8)
    for alpha in (0.0, 0.6):
        settings = {"beam_size": 4, "length_penalty": alpha}
        assert_alike(found(native, sources, **settings), found(theirs, sources, **settings))


def test_ctranslate2_outputs_have_paper_score() -> None:
    model = network(4, 2.0)
    scores, (_, theirs) = Networks([model]), both(model)
    sources = sentences(8)
    for source, outputs in zip(
        sources, found(theirs, sources, beam_size=4, n_best=3, length_penalty=0.6), strict=True
    ):
        assert len(outputs) == 3
        assert outputs == sorted(outputs, key=lambda one: (one.finished, one.score), reverse=True)
        for one in outputs:
            target = [*one.ids, *[EOS_ID] * one.finished]
            assert len(target) <= len(source) + 3
            (log_p,) = scores.token_log_probabilities([source], [target])
            assert one.log_probability == pytest.approx(sum(log_p), abs=1e-4)
            assert one.score == pytest.approx(sum(log_p) / ((5 + len(target)) / 6) ** 0.6, abs=1e-4)


def test_ctranslate2_passes_unsupported_input_to_fallback() -> None:
    native, theirs = both(network(5))
    inputs = [
        Input([5, 6, EOS_ID], max_length=6, prefix=[9, 10]),
        Input([7, EOS_ID], max_length=5),
        Input([8] * 1100 + [EOS_ID], max_length=4),
        Input([5, 8, EOS_ID], max_length=9, required=[[11, 12]]),
    ]
    config, seen = SearchConfig(beam_size=2), list[int]()
    ours = native.search(inputs, config, no_progress)
    assert_alike(ours, theirs.search(inputs, config, lambda done, total: seen.append(done)))
    assert ours[0][0].ids[:2] == (9, 10)
    assert seen == sorted(seen)
    assert (11, 12) in itertools.pairwise(ours[3][0].ids)
    assert seen[-1] == 4


def test_watcher_exception_stops_ctranslate2_search() -> None:
    def stop(n_done: int, total: int | None) -> None:
        raise InterruptedError

    _, theirs = both(network(6))
    with pytest.raises(InterruptedError):
        theirs.search([Input(source, 9) for source in sentences(4)], SearchConfig(), stop)
    assert theirs.search([], SearchConfig(), stop) == []


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"d_k": 8, "d_v": 16}, "model.d_v"),
        ({"encoder_window": 4}, "model.encoder_window"),
        ({"decoder_window": 4}, "model.decoder_window"),
    ],
)
def test_unsupported_config_is_rejected_by_ctranslate2(
    changes: dict[str, Any], key: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=key):
        export.save(network(1, **changes), Names(NAMES, NAMES), tmp_path)
    assert not [*tmp_path.iterdir()]


def test_network_with_custom_attention_is_rejected_by_ctranslate2(tmp_path: Path) -> None:
    model = network(1)
    model.decoder.stack[-1].source_attention.attend = lambda q, k, v, mask, dropout=0.0: v
    with pytest.raises(ConfigError, match="source_attention: uses the custom attention <lambda>"):
        export.save(model, Names(NAMES, NAMES), tmp_path)


@pytest.mark.parametrize("quantization", get_args(export.Quantization))
def test_export_does_not_modify_network(quantization: export.Quantization, tmp_path: Path) -> None:
    model = network(1)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    export.save(model, Names(NAMES, NAMES), tmp_path, quantization=quantization)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())


def test_every_model_config_field_is_exported_or_rejected() -> None:
    """A new field of `ModelConfig` must be added here."""
    expressed = {
        *("vocab_size", "source_vocab_size", "n_layers", "n_decoder_layers"),
        *("d_model", "d_ff", "n_heads", "d_k"),
        *("norm", "positions", "max_positions", "tied_embeddings", "activation"),
        *("attention_bias", "output_bias", "decoder_start", "pad_id", "bos_id"),
    }
    rejected = {"d_v", "encoder_window", "decoder_window"}
    in_training_only = {"dropout", "attention_dropout", "activation_dropout", "initial_gain"}
    fields = {field.name for field in dataclasses.fields(ModelConfig)}
    assert fields == expressed | rejected | in_training_only
