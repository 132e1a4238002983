"""Read MarianMT directories of Hugging Face transformers, the form of most OPUS-MT models.

A directory has `config.json`, the weights (`model.safetensors`, or `pytorch_model.bin`, which
torch's restricted reader opens: it builds tensors and runs no code), `source.spm`, `target.spm` and
`vocab.json`.
"""

import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from transept.errors import CheckpointError, ConfigError, DataError, Problem
from transept.formats.files import (
    MAX_SHARING,
    check_archive,
    check_entries,
    read_json,
    read_sentencepiece,
)
from transept.formats.foreign import (
    EXCLUDED,
    ForeignAttention,
    ForeignLayer,
    ForeignLinear,
    ForeignModel,
    ForeignNorm,
    ForeignVocabulary,
    NamedTensors,
    interleaved,
    permuted,
    shaped,
)
from transept.shapes import Tensor

SAFETENSORS, PICKLED = "model.safetensors", "pytorch_model.bin"
LANGUAGE = re.compile("[a-z]{2,3}")
LICENCE = re.compile(r"^license: *([\w.+-]+)", re.MULTILINE)
"""In the front matter of a README.md on the Hugging Face Hub."""
CONFIG, VOCABULARY, TARGET_VOCABULARY = "config.json", "vocab.json", "target_vocab.json"
EMBEDDINGS = [
    (f"model.{side}.embed_tokens.weight", "model.shared.weight") for side in ("encoder", "decoder")
]
"""The matrices of source and target: the own one of each, and the one that they share."""

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
COUNTS = (
    "d_model",
    "encoder_layers",
    "decoder_layers",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "encoder_attention_heads",
    "decoder_attention_heads",
)
IDS = ("eos_token_id", "decoder_start_token_id", "pad_token_id")
FLAGS = ("scale_embedding", "share_encoder_decoder_embeddings")


def is_marian(directory: Path) -> bool:
    """Whether it looks like such a directory."""
    return (directory / CONFIG).is_file() and any(
        (directory / name).is_file() for name in (SAFETENSORS, PICKLED)
    )


def read_marian(directory: Path) -> ForeignModel:
    """The model of a directory, or an error that names each key that cannot be represented."""
    config = {**DEFAULTS, **read_json(directory / CONFIG)}
    _check(config, directory / CONFIG)
    width = config["d_model"]
    weights = _Weights(*_read_weights(directory))
    separate = not config["share_encoder_decoder_embeddings"]
    embeddings = [
        weights.first(names if separate else names[::-1], None, width) for names in EMBEDDINGS
    ]
    files = _vocabulary_files(directory)
    entries = [entries_of(file) for file in files]
    for each, embedding, file in zip(entries, embeddings, files, strict=True):
        check_entries(each, len(embedding), file)
    size = len(entries[1])
    _check_ids(config, [len(each) for each in entries], directory / CONFIG)
    start = config["decoder_start_token_id"]
    excluded = _excluded(directory, config, size)
    bias = weights.get("final_logits_bias", 1, size)
    bias = torch.zeros(size) if bias is None else bias.flatten()
    bias[excluded] = EXCLUDED
    projection = weights.get("lm_head.weight", size, width)
    pad = config.get("pad_token_id")
    if pad not in excluded or any(one[pad].any() for one in embeddings):
        pad = None
    source, target = (
        _vocabulary(file, each, directory / model, config["eos_token_id"], pad)
        for file, each, model in zip(files, entries, ("source.spm", "target.spm"), strict=True)
    )
    half_split = ForeignModel(
        source=source,
        target=target,
        source_embedding=embeddings[0],
        target_embedding=embeddings[1],
        projection=embeddings[1] if projection is None else projection,
        projection_bias=bias,
        embeddings_are_scaled=config["scale_embedding"],
        positions=None,
        encoder=[_layer(weights, "encoder", n, config) for n in range(config["encoder_layers"])],
        decoder=[_layer(weights, "decoder", n, config) for n in range(config["decoder_layers"])],
        final_norms=None,
        n_heads=config["encoder_attention_heads"],
        activation=config["activation_function"],
        start=start if embeddings[1][start].any() else None,
        about=_about(directory, config),
    )
    return permuted(half_split, interleaved(width))


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
    needed = {**dict.fromkeys(COUNTS, 1), **dict.fromkeys(IDS, 0)}
    if config.get("pad_token_id") is None:
        del needed["pad_token_id"]
    for key, least in needed.items():
        if type(config.get(key)) is not int or config[key] < least:
            what = f"is {config.get(key)!r}; it must be an integer of at least {least}"
            problems.append(Problem(key, what))
    for key in FLAGS:
        if not isinstance(config[key], bool):
            problems.append(Problem(key, f"is {config[key]!r}; it must be true or false"))
    if problems:
        raise ConfigError([Problem(f"{path}: {one.key}", one.what) for one in problems])


def _check_ids(config: Mapping[str, Any], sizes: Sequence[int], path: Path) -> None:
    """Reject ids of special entries that the vocabularies of source and target do not have."""
    for key in IDS:
        size = sizes[1] if key == "decoder_start_token_id" else min(sizes)
        if (config.get(key) or 0) >= size:
            what = f"is {config[key]}, and the vocabulary has {size:,} entries"
            raise ConfigError([Problem(f"{path}: {key}", what)])


class _Weights(NamedTensors):
    def __init__(self, found: Mapping[str, Tensor], path: Path) -> None:
        super().__init__(path)
        self._found.update(found)

    def get(self, name: str, *shape: int | None) -> Tensor | None:
        found = self._found.get(name)
        if found is None:
            return None
        if not found.is_floating_point():
            raise CheckpointError(f"{self.path}: {name} has {found.dtype}, and must have floats")
        return shaped(found, shape, f"{self.path}: {name}").float()

    def linear(self, name: str, rows: int, columns: int) -> ForeignLinear:
        """A projection with its bias."""
        return ForeignLinear(
            self.tensor(f"{name}.weight", rows, columns), self.tensor(f"{name}.bias", rows)
        )

    def norm(self, name: str, width: int) -> ForeignNorm:
        """A layer normalization."""
        return ForeignNorm(self.tensor(f"{name}.weight", width), self.tensor(f"{name}.bias", width))


def _layer(weights: _Weights, side: str, number: int, config: Mapping[str, Any]) -> ForeignLayer:
    at, width, inner = f"model.{side}.layers.{number}", config["d_model"], config["encoder_ffn_dim"]

    def attention(name: str) -> ForeignAttention:
        parts = [weights.linear(f"{at}.{name}.{part}_proj", width, width) for part in "qkv"]
        return ForeignAttention(
            ForeignLinear(*(torch.cat(each) for each in zip(*parts, strict=True))),
            weights.linear(f"{at}.{name}.out_proj", width, width),
            weights.norm(f"{at}.{name}_layer_norm", width),
        )

    return ForeignLayer(
        attention("self_attn"),
        attention("encoder_attn") if side == "decoder" else None,
        weights.linear(f"{at}.fc1", inner, width),
        weights.linear(f"{at}.fc2", width, inner),
        weights.norm(f"{at}.final_layer_norm", width),
    )


def _excluded(directory: Path, config: Mapping[str, Any], size: int) -> list[int]:
    """The entries that are never written: `bad_words_ids`, normally padding."""
    path = directory / "generation_config.json"
    settings: Mapping[str, Any] = read_json(path) if path.is_file() else {}
    if "bad_words_ids" not in settings:
        path, settings = directory / CONFIG, config
    sequences = settings.get("bad_words_ids") or []
    ids = range(size)
    if not isinstance(sequences, list) or not all(
        isinstance(one, list) and len(one) == 1 and type(one[0]) is int and one[0] in ids
        for one in sequences
    ):
        what = f"must be a list of lists of one id each, below {size:,}; others are not supported"
        raise ConfigError([Problem(f"{path}: bad_words_ids", what)])
    return [entry for (entry,) in sequences]


def _vocabulary_files(directory: Path) -> tuple[Path, Path]:
    """The vocabularies of source and target."""
    source, target = directory / VOCABULARY, directory / TARGET_VOCABULARY
    return source, target if target.is_file() else source


def _vocabulary(
    path: Path, entries: Sequence[str], model: Path, eos: int, pad: int | None
) -> ForeignVocabulary:
    if "<unk>" not in entries:
        raise DataError(f"{path}: has no entry <unk>; use another copy")
    padding = None if pad is None else entries[pad]
    silent = [one for one in ("<pad>", "<s>", "<eop>", "<eod>") if one in entries]
    return ForeignVocabulary(
        entries=entries,
        model=read_sentencepiece(model),
        eos=eos,
        unk=entries.index("<unk>"),
        pad=pad,
        silent=tuple(one for one in silent if one != padding),
    )


def entries_of(path: Path) -> list[str]:
    """The entries of a `vocab.json`, in the order of their ids, which must be 0 to n − 1."""
    table = read_json(path)
    ids = [index for index in table.values() if type(index) is int]
    if len(ids) < len(table) or sorted(ids) != list(range(len(table))):
        raise DataError(f"{path}: its ids are not 0 to {len(table) - 1}, each once")
    return sorted(table, key=table.__getitem__)


def _about(directory: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    name = config.get("_name_or_path")
    is_name = isinstance(name, str) and name and name.isprintable()
    about = {
        "imported_from": name if is_name else directory.name,
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


def _read_weights(directory: Path) -> tuple[Mapping[str, Tensor], Path]:
    """The tensors, and the file that they are in."""
    path = directory / SAFETENSORS
    if not path.is_file():
        return _read_pickled(directory / PICKLED), directory / PICKLED
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, path  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path}: cannot be read ({_first_line(error)})") from error


def _read_pickled(path: Path) -> Mapping[str, Tensor]:
    try:
        with path.open("rb") as file:
            if file.read(2) == b"PK":  # older files are not zip archives
                check_archive(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path}: is not plain tensors, so it may contain code, which is never run "
            f"({_first_line(error)}); use a copy in safetensors"
        ) from error
    except Exception as error:  # torch does not say which errors a damaged file raises
        raise CheckpointError(f"{path}: cannot be read ({_first_line(error)})") from error
    if not isinstance(found, dict) or not all(map(_is_plain, found.values())):
        raise CheckpointError(f"{path}: is not a dictionary of tensors")
    total = sum(one.numel() * one.element_size() for one in found.values())
    if total > MAX_SHARING * path.stat().st_size:
        raise CheckpointError(f"{path}: its tensors have {total:,} bytes, more than the file holds")
    return found


def _is_plain(value: object) -> bool:
    """Whether it is a tensor with all its numbers in memory."""
    return (
        isinstance(value, Tensor)
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
    )


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
