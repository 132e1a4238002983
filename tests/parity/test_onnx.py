"""Exported networks in ONNX Runtime give the same outputs as transept."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from transept import ModelConfig, Transformer
from transept.checkpoint import load_weights, weights_of
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.native.engine import NativeEngine
from transept.engines.onnx.network import (
    DECODER,
    DECODER_MERGED,
    DECODER_WITH_PAST,
    ENCODER,
    obstacles,
    write_onnx,
)
from transept.engines.onnx.runner import OnnxRunner, as_past, run, session
from transept.errors import ConfigError
from transept.model.attention import reference_attention
from transept.model.packing import pad_rows
from transept.model.positions import sinusoids
from transept.progress import no_progress
from transept.quantization import pack, unpack
from transept.text.tokenizer import EOS_ID, PAD_ID

FILES = [ENCODER, DECODER, DECODER_WITH_PAST, DECODER_MERGED]
VOCABULARY = 120
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-norm": {"norm": "pre", "output_bias": True},
    "swish, biases": {"activation": "swish", "attention_bias": True},
    "learned positions": {"positions": "learned", "max_positions": 24},
    "start token": {"decoder_start": "token", "norm": "pre"},
    "two vocabularies": {"tied_embeddings": "two-way", "source_vocab_size": 80},
    "untied": {"tied_embeddings": "none", "output_bias": True},
    "3 + 1 layers": {"n_layers": 3, "n_decoder_layers": 1},
    "unequal heads": {"d_k": 8, "d_v": 24},
}
SOURCES = [[5, 6, 7, 8, 9, 10, EOS_ID], [11, EOS_ID], [12, 13, 70, 15, EOS_ID]]
TARGETS = [[20, 21, EOS_ID], [30, 31, 32, 33, 34, EOS_ID], [40, EOS_ID]]


def network(seed: int, end: float = 0.0, **changes: Any) -> Transformer:
    """A network with random vectors; `end` is the logit bias of the end symbol."""
    torch.manual_seed(seed)
    settings = {"n_layers": 2, "d_model": 32, "d_ff": 48, "n_heads": 4, **changes}
    settings["output_bias"] = settings.get("output_bias", end != 0)
    model = Transformer(ModelConfig(vocab_size=VOCABULARY, **settings)).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float("norm.weight" in name), std=0.3)
    with torch.no_grad():
        model.target_embedding.weight.mul_(2)
        model.target_embedding.weight[PAD_ID] = 1  # read as zero nevertheless
        if end:
            model.projection.bias[EOS_ID] = end
    return model


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[Transformer, Path]]:
    """A network of a variant and its exported files."""
    known: dict[str, tuple[Transformer, Path]] = {}

    def export(variant: str) -> tuple[Transformer, Path]:
        if variant not in known:
            model, directory = network(1, **VARIANTS[variant]), tmp_path_factory.mktemp("onnx")
            write_onnx(model, directory)
            known[variant] = model, directory
        return known[variant]

    return export


@torch.inference_mode()
def expected(model: Transformer) -> list[np.ndarray[Any, Any]]:
    """Log p of every token at each position of the targets, without padding."""
    logits = model(pad_rows(SOURCES, PAD_ID), pad_rows(TARGETS, PAD_ID))
    logits[..., PAD_ID] = -torch.inf
    log_p = logits.log_softmax(dim=-1)
    return [row[: len(one)].numpy() for row, one in zip(log_p, TARGETS, strict=True)]


def encoded(directory: Path) -> dict[str, Any]:
    """The inputs that all decoders share: the padded batch, encoded."""
    ids = pad_rows(SOURCES, PAD_ID).numpy()
    mask = (ids != PAD_ID).astype(np.int64)
    states = run(session(directory / ENCODER), input_ids=ids, attention_mask=mask)
    return {
        "encoder_attention_mask": mask,
        "encoder_hidden_states": states["last_hidden_state"],
    }


def shifted(model: Transformer) -> np.ndarray[Any, Any]:
    return pad_rows([[model.start_id, *one[:-1]] for one in TARGETS], PAD_ID).numpy()


def assert_close(model: Transformer, logits: np.ndarray[Any, Any]) -> None:
    assert logits.dtype == np.float32
    log_p = torch.from_numpy(logits).log_softmax(dim=-1).numpy()
    assert log_p[..., PAD_ID].max() < -5000
    for mine, theirs in zip(expected(model), log_p, strict=True):
        difference = np.abs(mine - theirs[: len(mine)])
        assert np.delete(difference, PAD_ID, axis=1).max() < 1e-4


@pytest.mark.parametrize("variant", VARIANTS)
def test_onnx_log_probabilities_match_network_on_padded_batch(
    variant: str, exported: Callable[..., tuple[Transformer, Path]]
) -> None:
    model, directory = exported(variant)
    outputs = run(session(directory / DECODER), **encoded(directory), input_ids=shifted(model))
    assert_close(model, outputs["logits"])


@pytest.mark.parametrize("variant", VARIANTS)
def test_onnx_log_probabilities_match_network_step_by_step(
    variant: str, exported: Callable[..., tuple[Transformer, Path]]
) -> None:
    model, directory = exported(variant)
    inputs, ids = encoded(directory), shifted(model)
    outputs = run(session(directory / DECODER), **inputs, input_ids=ids[:, :1])
    logits, cache = [outputs["logits"]], dict[str, Any]()
    decoder = session(directory / DECODER_WITH_PAST)
    del inputs["encoder_hidden_states"]
    for at in range(1, ids.shape[1]):
        cache |= as_past(outputs)
        outputs = run(decoder, **inputs, **cache, input_ids=ids[:, at : at + 1])
        logits.append(outputs["logits"])
    assert_close(model, np.concatenate(logits, axis=1))


@pytest.mark.parametrize(
    ("variant", "placeholder"), [*((variant, 0) for variant in VARIANTS), ("paper", 1)]
)
def test_merged_decoder_matches_network_step_by_step(
    variant: str, placeholder: int, exported: Callable[..., tuple[Transformer, Path]]
) -> None:
    model, directory = exported(variant)
    inputs, ids, decoder = encoded(directory), shifted(model), session(directory / DECODER_MERGED)
    cache = {
        one.name: np.full((len(ids), one.shape[1], placeholder, one.shape[3]), 9, np.float32)
        for one in decoder.get_inputs()
        if one.name.startswith("past_key_values.")
    }
    logits = []
    for begin, end in [(0, 2), (2, 3), (3, ids.shape[1])]:
        is_used = np.array([begin > 0])
        outputs = run(
            decoder, **inputs, **cache, input_ids=ids[:, begin:end], use_cache_branch=is_used
        )
        logits.append(outputs["logits"])
        cache |= as_past(outputs)
    assert_close(model, np.concatenate(logits, axis=1))


@pytest.mark.parametrize("variant", VARIANTS)
def test_onnx_greedy_outputs_match_native(variant: str, tmp_path: Path) -> None:
    n_finished = 0
    for seed, end in [(2, 0.0), (3, 12.0)]:
        model = network(seed, end, **VARIANTS[variant])
        write_onnx(model, tmp_path)
        runner, native = OnnxRunner(tmp_path), NativeEngine([model])
        sources = [*SOURCES, [*range(4, 16), EOS_ID]]
        inputs = [Input(source, 12) for source in sources]
        found = native.search(inputs, SearchConfig(beam_size=1), no_progress)
        for source, (ours,) in zip(sources, found, strict=True):
            ids, log_p = runner.greedy(source, 12)
            assert ids == [*ours.ids, *[EOS_ID] * ours.finished]
            assert sum(log_p) == pytest.approx(ours.log_probability, abs=1e-4)
            n_finished += ours.finished
    assert 0 < n_finished < 8  # outputs of both kinds


@pytest.mark.parametrize("variant", ["paper", "learned positions", "two vocabularies", "untied"])
def test_int8_files_match_int8_model_and_are_small(variant: str, tmp_path: Path) -> None:
    model = network(4, d_model=128, d_ff=256, **VARIANTS[variant])
    sizes = []
    for int8 in (False, True):
        write_onnx(model, tmp_path, int8=int8)
        sizes.append(sum((tmp_path / name).stat().st_size for name in FILES))
    assert sizes[1] < 0.35 * sizes[0]
    rounded = unpack(pack(weights_of(model), "int8"), "int8", tmp_path)
    load_weights(model, rounded, tmp_path)
    outputs = run(session(tmp_path / DECODER), **encoded(tmp_path), input_ids=shifted(model))
    assert_close(model, outputs["logits"])
    (ours,) = NativeEngine([model]).search(
        [Input(SOURCES[0], 8)], SearchConfig(beam_size=1), no_progress
    )
    ids, log_p = OnnxRunner(tmp_path).greedy(SOURCES[0], 8)
    assert ids == [*ours[0].ids, *[EOS_ID] * ours[0].finished]
    assert sum(log_p) == pytest.approx(ours[0].log_probability, abs=1e-4)


def test_files_have_names_and_shapes_of_optimum(tmp_path: Path) -> None:
    write_onnx(network(5, n_layers=1), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*FILES}
    caches = [f"0.{side}.{part}" for side in ("decoder", "encoder") for part in ("key", "value")]
    past, present = ([f"{name}.{one}" for one in caches] for name in ("past_key_values", "present"))
    decoder = ["encoder_attention_mask", "input_ids"]
    names = {
        ENCODER: (["input_ids", "attention_mask"], ["last_hidden_state"]),
        DECODER: ([*decoder, "encoder_hidden_states"], ["logits", *present]),
        DECODER_WITH_PAST: ([*decoder, *past], ["logits", *present[:2]]),
        DECODER_MERGED: (
            [*decoder, "encoder_hidden_states", *past, "use_cache_branch"],
            ["logits", *present],
        ),
    }
    for name, (inputs, outputs) in names.items():
        model = onnx.load(tmp_path / name)
        onnx.checker.check_model(model, full_check=True)
        assert model.producer_name == "transept"
        assert {node.domain for node in model.graph.node} == {""}
        opened = session(tmp_path / name)
        assert [one.name for one in opened.get_inputs()] == inputs
        assert [one.name for one in opened.get_outputs()] == outputs
    with_past = {one.name: one.shape for one in session(tmp_path / DECODER_WITH_PAST).get_inputs()}
    assert with_past["input_ids"] == ["batch_size", 1]
    assert with_past[past[0]] == ["batch_size", 4, "past_decoder_sequence_length", 8]


def test_sinusoids_are_exact_far_beyond_first_1024_positions(tmp_path: Path) -> None:
    model = network(6, n_layers=1)
    with torch.no_grad():  # the encoder's output is the normalized positional encoding
        for name, parameter in model.encoder.named_parameters():
            parameter.fill_(float("norm.weight" in name))
        model.source_embedding.weight.zero_()
    write_onnx(model, tmp_path)
    ids = np.full((1, 3000), 4, np.int64)
    encoder = session(tmp_path / ENCODER)
    (states,) = run(encoder, input_ids=ids, attention_mask=ids)["last_hidden_state"]
    normed = sinusoids(torch.arange(3000), 32)
    for _ in range(2):
        normed = nn.functional.layer_norm(normed, (32,), eps=1e-5)
    assert np.abs(states - normed.numpy()).max() < 1e-5


@pytest.mark.parametrize("key", ["encoder_window", "decoder_window"])
def test_windows_are_rejected_with_the_config_key(key: str, tmp_path: Path) -> None:
    model = network(7, **{key: 4})
    assert [problem.key for problem in obstacles(model.config)] == [f"model.{key}"]
    with pytest.raises(ConfigError, match=f"model.{key}.*window"):
        write_onnx(model, tmp_path)
    assert not [*tmp_path.iterdir()]


def test_custom_attention_is_rejected_with_its_name(tmp_path: Path) -> None:
    def sharper(q: Any, k: Any, v: Any, mask: Any, dropout: float = 0.0) -> Any:
        return reference_attention(2 * q, k, v, mask, dropout)

    model = network(8)
    model.decoder.stack[0].self_attention.attend = sharper
    with pytest.raises(ConfigError, match="sharper"):
        write_onnx(model, tmp_path)
    assert not [*tmp_path.iterdir()]
