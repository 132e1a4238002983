"""Read MarianMT directories of Hugging Face transformers, the form of most OPUS-MT models.

A directory has `config.json`, the weights (`model.safetensors`, or `pytorch_model.bin`, which
torch's restricted reader opens: it builds tensors and runs no code), `source.spm`, `target.spm` and
`vocab.json`.
"""

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from transept.errors import CheckpointError, ConfigError, DataError, Problem
from transept.formats.files import read_bytes, read_json
from transept.formats.foreign import (
    EXCLUDED,
    ForeignAttention,
    ForeignLayer,
    ForeignLinear,
    ForeignModel,
    ForeignNorm,
    ForeignVocabulary,
    interleaved,
    permuted,
)
from transept.shapes import Tensor

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
LANGUAGE = re.compile("[a-z]{2,3}")
LICENCE = re.compile(r"^license: *(\S+)", re.MULTILINE)
"""In the front matter of a README.md on the Hugging Face Hub."""
CONFIG, VOCABULARY, TARGET_VOCABULARY = "config.json", "vocab.json", "target_vocab.json"

WANTED: Mapping[str, Any] = {
    "model_type": "marian",
    "is_encoder_decoder": True,
}
"""Keys of config.json that must have these values."""
DEFAULTS: Mapping[str, Any] = {
    "scale_embedding": False,
    "share_encoder_decoder_embeddings": True,
    "activation_function": "gelu",
    "max_position_embeddings": 1024,
}
"""What transformers takes for keys that a file leaves out."""


def is_marian(directory: Path) -> bool:
    """Whether it looks like such a directory."""
    return (directory / CONFIG).is_file() and any(
        (directory / name).is_file() for name in (SAFETENSORS, PICKLED)
    )


def read_marian(directory: Path) -> ForeignModel:
    """The model of a directory, or an error that names each key that cannot be represented."""
    config = {**DEFAULTS, **read_json(directory / CONFIG)}
    _check(config, directory / CONFIG)
    weights = _Weights(_read_weights(directory), directory)
    separate = not config["share_encoder_decoder_embeddings"]
    embeddings = [
        weights.first(f"model.{side}.embed_tokens.weight", "model.shared.weight")
        if separate
        else weights.first("model.shared.weight", f"model.{side}.embed_tokens.weight")
        for side in ("encoder", "decoder")
    ]
    start = int(config["decoder_start_token_id"])
    excluded = _excluded(directory, config)
    bias = weights.found.get("final_logits_bias", torch.zeros(1, len(embeddings[1]))).flatten()
    bias[excluded] = EXCLUDED
    pad = config.get("pad_token_id")
    if pad not in excluded or any(one[pad].any() for one in embeddings):
        pad = None
    source, target = _vocabularies(directory, config, pad)
    half_split = ForeignModel(
        source=source,
        target=target,
        source_embedding=embeddings[0],
        target_embedding=embeddings[1],
        projection=weights.found.get("lm_head.weight", embeddings[1]),
        projection_bias=bias,
        embeddings_are_scaled=bool(config["scale_embedding"]),
        positions=None,
        encoder=[_layer(weights, "encoder", n) for n in range(config["encoder_layers"])],
        decoder=[_layer(weights, "decoder", n) for n in range(config["decoder_layers"])],
        final_norms=None,
        n_heads=config["encoder_attention_heads"],
        activation=config["activation_function"],
        start=start if embeddings[1][start].any() else None,
        about=_about(directory, config),
    )
    return permuted(half_split, interleaved(half_split.projection.shape[1]))


def _check(config: Mapping[str, Any], path: Path) -> None:
    problems = [
        Problem(key, f"is {config.get(key)!r}; only {wanted!r} can be imported")
        for key, wanted in WANTED.items()
        if config.get(key, wanted) != wanted or (key == "model_type" and key not in config)
    ]
    for one, other in (
        ("encoder_ffn_dim", "decoder_ffn_dim"),
        ("encoder_attention_heads", "decoder_attention_heads"),
    ):
        if config.get(one) != config.get(other):
            what = f"is {config.get(one)} and {other} is {config.get(other)}; they must be equal"
            problems.append(Problem(one, what))
    if config["activation_function"] not in ("relu", "swish", "silu"):
        what = f"is {config['activation_function']!r}; only relu and swish (silu) can be imported"
        problems.append(Problem("activation_function", what))
    for key in ("encoder_layers", "decoder_layers", "d_model", "eos_token_id"):
        if not isinstance(config.get(key), int):
            problems.append(Problem(key, "must be an integer"))
    if problems:
        raise ConfigError([Problem(f"{path}: {one.key}", one.what) for one in problems])


class _Weights:
    """Tensors by name; a missing one is an error that names it."""

    def __init__(self, found: Mapping[str, Tensor], directory: Path) -> None:
        self.found, self._directory = found, directory

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.found:
            raise CheckpointError(f"{self._directory}: its weights lack {name}: use another copy")
        return self.found[name]

    def first(self, *names: str) -> Tensor:
        """The first of these that exists."""
        return self[next((name for name in names if name in self.found), names[0])]

    def linear(self, name: str) -> ForeignLinear:
        """A projection with its bias."""
        return ForeignLinear(self[f"{name}.weight"], self[f"{name}.bias"])

    def norm(self, name: str) -> ForeignNorm:
        """A layer normalization."""
        return ForeignNorm(self[f"{name}.weight"], self[f"{name}.bias"])


def _layer(weights: _Weights, side: str, number: int) -> ForeignLayer:
    at = f"model.{side}.layers.{number}"

    def attention(name: str) -> ForeignAttention:
        parts = [weights.linear(f"{at}.{name}.{part}_proj") for part in "qkv"]
        qkv = ForeignLinear(*(torch.cat(each) for each in zip(*parts, strict=True)))
        return ForeignAttention(
            qkv, weights.linear(f"{at}.{name}.out_proj"), weights.norm(f"{at}.{name}_layer_norm")
        )

    return ForeignLayer(
        attention("self_attn"),
        attention("encoder_attn") if side == "decoder" else None,
        weights.linear(f"{at}.fc1"),
        weights.linear(f"{at}.fc2"),
        weights.norm(f"{at}.final_layer_norm"),
    )


def _excluded(directory: Path, config: Mapping[str, Any]) -> list[int]:
    """The entries that are never written: `bad_words_ids`, normally padding."""
    path = directory / "generation_config.json"
    settings = {**config, **(read_json(path) if path.is_file() else {})}
    sequences = settings.get("bad_words_ids") or []
    if any(len(sequence) != 1 for sequence in sequences):
        what = "has sequences of several entries; only single entries can be imported"
        raise ConfigError([Problem(f"{path}: bad_words_ids", what)])
    return [int(entry) for (entry,) in sequences]


def _vocabularies(
    directory: Path, config: Mapping[str, Any], pad: int | None
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    has_two = (directory / TARGET_VOCABULARY).is_file()
    files = (VOCABULARY, TARGET_VOCABULARY if has_two else VOCABULARY)
    sides = []
    for name, model in zip(files, ("source.spm", "target.spm"), strict=True):
        entries = entries_of(directory / name)
        if "<unk>" not in entries:
            raise DataError(f"{directory / name}: has no entry <unk>; use another copy")
        padding = entries[pad] if pad is not None else None
        silent = [one for one in ("<pad>", "<s>", "<eop>", "<eod>") if one in entries]
        sides.append(
            ForeignVocabulary(
                entries=entries,
                model=read_bytes(directory / model),
                eos=config["eos_token_id"],
                unk=entries.index("<unk>"),
                pad=pad,
                silent=tuple(one for one in silent if one != padding),
            )
        )
    return sides[0], sides[1]


def entries_of(path: Path) -> list[str]:
    """The entries of a `vocab.json`, in the order of their ids, which must be 0 to n − 1."""
    table = read_json(path)
    by_id = sorted(table.items(), key=lambda item: (isinstance(item[1], int), item[1]))
    if [index for _, index in by_id] != list(range(len(by_id))):
        raise DataError(f"{path}: its ids are not 0 to {len(by_id) - 1}, each once")
    return [entry for entry, _ in by_id]


def _about(directory: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    about = {
        "imported_from": config.get("_name_or_path") or directory.name,
        "format": "Hugging Face MarianMT",
    }
    settings = directory / "tokenizer_config.json"
    for side in ("source", "target") if settings.is_file() else ():
        code = read_json(settings).get(f"{side}_lang")
        if isinstance(code, str) and LANGUAGE.fullmatch(code):
            about[f"{side}_language"] = code
    card = directory / "README.md"
    if card.is_file():
        text = card.read_text(encoding="utf-8", errors="replace")
        if found := LICENCE.search(text.partition("\n---")[0]):
            about["licence"] = found[1]
    return about


# --- files -----------------------------------------------------------------------------------


def _read_weights(directory: Path) -> dict[str, Tensor]:
    path = directory / SAFETENSORS
    try:
        if path.is_file():
            with safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        path = directory / PICKLED
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, SafetensorError, RuntimeError, EOFError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({_first_line(error)})") from error
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path}: is not plain tensors, so it may contain code, which is never run "
            f"({_first_line(error)}); use a copy in safetensors"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(one, Tensor) for one in found.values()):
        raise CheckpointError(f"{path}: is not a dictionary of tensors")
    return {name: tensor.float() for name, tensor in found.items()}


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
