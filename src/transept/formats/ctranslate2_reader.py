"""Read CTranslate2 directories: `model.bin` and its vocabularies.

`model.bin` is a list of named arrays; `ctranslate2/specs/model_spec.py` writes it. Weights in int8
and int16 are stored with a scale, float16 and bfloat16 as they are. All become float32.
"""

import json
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

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
)
from transept.model.positions import sinusoids
from transept.shapes import Float, Tensor

MODEL, CONFIG = "model.bin", "config.json"
SPECS = {"TransformerSpec": None, "TransformerBase": 8, "TransformerBig": 16}
"""Kinds of models, with the number of heads where the file does not have it."""
TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
"""By the number that stands for them since version 4; before, only their size is known."""
BY_SIZE = {4: torch.float32, 2: torch.int16, 1: torch.int8}
ACTIVATIONS = {0: "relu", 1: "gelu (tanh)", 2: "swish", 3: "gelu", 4: "gelu (sigmoid)", 5: "tanh"}
RENAMED = (
    (r"^transformer/|:0$", ""),
    ("LayerNorm", "layer_norm"),
    ("masked_multi_head", "self_attention"),
    ("^(encoder.*)multi_head", r"\1self_attention"),
    ("multi_head", "attention"),
    ("w_embs", "embeddings/weight"),
    ("conv1d/", "linear_0/"),
    ("conv1d_", "linear_"),
    ("dense/", "projection/"),
    ("kernel", "weight"),
)
INT16_SCALE = 1000.0
"""The scale of 16-bit integers that have none in the file."""
N_POSITIONS = 1024
UNKNOWN = {
    "alibi": "ALiBi",
    "rotary_dim": "rotary positions",
    "relative_position_keys": "relative positions",
    "relative_attention_bias": "relative positions",
    "layernorm_embedding/gamma": "a norm of the embeddings",
    "linear_0_noact/weight": "gated feed-forward networks",
    "sliding_window": "attention in a window",
    "num_heads_kv": "heads that share keys",
    "multi_query_attention": "heads that share keys",
    "q_norm/gamma": "norms of queries and keys",
    "scale_outputs": "scaled outputs",
    "queries_scale": "another scale of queries",
    "final_logit_softcapping": "capped logits",
}
"""Variables, by the end of their names, that stand for parts that transept does not have."""


def is_ctranslate2(directory: Path) -> bool:
    """Whether it looks like such a directory."""
    return (directory / MODEL).is_file()


def read_ctranslate2(directory: Path, models: tuple[bytes, bytes]) -> ForeignModel:
    """The model of a directory.

    Args:
        directory: With `model.bin`, vocabularies and, in newer versions, `config.json`.
        models: The sentencepiece models of source and target, which CTranslate2 does not store.
            Empty ones stand for text that is already in pieces.
    """
    variables = _Variables(directory / MODEL)
    _check(variables)
    config = _config(directory)
    bias = variables.get("decoder/projection/bias")
    source, target = (
        _vocabulary(directory, side, model, config, bias)
        for side, model in zip(("source", "target"), models, strict=True)
    )
    pre_norm = bool(variables.number("encoder/pre_norm", 1))
    depths = [variables.count(f"{side}/layer_") for side in ("encoder", "decoder")]
    embedding = variables["decoder/embeddings/weight"]
    zero_start = bool(variables.number("decoder/start_from_zero_embedding", 0))
    return ForeignModel(
        source=source,
        target=target,
        source_embedding=variables.first(
            "encoder/embeddings_0/weight", "encoder/embeddings/weight"
        ),
        target_embedding=embedding,
        projection=variables.first("decoder/projection/weight", "decoder/embeddings/weight"),
        projection_bias=bias,
        embeddings_are_scaled=bool(variables.number("encoder/scale_embeddings", 1)),
        positions=_positions(variables, embedding.shape[1]),
        encoder=[_layer(variables, "encoder", number) for number in range(depths[0])],
        decoder=[_layer(variables, "decoder", number) for number in range(depths[1])],
        final_norms=(variables.norm("encoder"), variables.norm("decoder")) if pre_norm else None,
        n_heads=int(variables.number("encoder/num_heads", SPECS[variables.spec] or 8)),
        activation=ACTIVATIONS.get(int(variables.number("encoder/activation", 0)), "unknown"),
        start=None if zero_start else _start(target, config),
        about={"imported_from": directory.name, "format": "CTranslate2"},
    )


class _Variables:
    """The arrays of a `model.bin`, dequantized when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content = memoryview(read_bytes(path))
        self._at = 0
        try:
            self._read()
        except (struct.error, UnicodeDecodeError, ValueError, IndexError) as error:
            raise CheckpointError(
                f"{path}: is damaged, or not a model of CTranslate2 ({error})"
            ) from error

    def _read(self) -> None:
        self.version = self._number("I")
        # Version 1 had one kind of model.
        self.spec = self._string() if self.version >= 2 else "TransformerBase"
        self.revision = self._number("I") if self.version >= 2 else 1
        self._found: dict[str, Tensor] = {}
        for _ in range(self._number("I")):
            name, shape = self._string(), []
            if self.version == 1:
                name = _renamed(name)
            for _ in range(self._number("B")):
                shape.append(self._number("I"))
            if self.version >= 4:
                dtype = TYPES[self._number("B")]
                n_bytes = self._number("I")
            else:
                size = self._number("B")
                dtype, n_bytes = BY_SIZE[size], size * self._number("I")
            data = bytearray(self._bytes(n_bytes))
            flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
            self._found[name] = flat.view(shape)
        for _ in range(self._number("I") if self.version >= 3 else 0):
            alias, name = self._string(), self._string()
            self._found[alias] = self._found[name]
            # The scale of a shared matrix has no alias.
            if f"{name}_scale" in self._found:
                self._found.setdefault(f"{alias}_scale", self._found[f"{name}_scale"])
        if self._at != len(self._content):
            raise ValueError(f"{len(self._content) - self._at:,} bytes are left over")

    def _bytes(self, n: int) -> memoryview:
        if self._at + n > len(self._content):
            raise ValueError("it ends too early")
        self._at += n
        return self._content[self._at - n : self._at]

    def _number(self, form: str) -> int:
        form = f"<{form}"
        return int(struct.unpack(form, self._bytes(struct.calcsize(form)))[0])

    def _string(self) -> str:
        return bytes(self._bytes(self._number("H"))).rstrip(b"\0").decode()

    @property
    def names(self) -> list[str]:
        return list(self._found)

    def get(self, name: str) -> Tensor | None:
        """An array in float32, if there is one of this name."""
        found = self._found.get(name)
        if found is None or found.dtype not in (torch.int8, torch.int16) or not found.ndim:
            return None if found is None else found.float()
        scale = self._found.get(f"{name}_scale")
        if scale is None and found.dtype == torch.int16:
            scale = torch.tensor(INT16_SCALE)
        if scale is None:
            raise CheckpointError(
                f"{self._path}: {name} has integers without a scale; it is damaged"
            )
        scale = scale.float()
        return found.float() / (scale[:, None] if scale.ndim == 1 and len(scale) > 1 else scale)

    def __getitem__(self, name: str) -> Tensor:
        found = self.get(name)
        if found is None:
            raise CheckpointError(f"{self._path}: has no {name}: it is another kind of model")
        return found

    def first(self, *names: str) -> Tensor:
        return self[next((name for name in names if name in self._found), names[0])]

    def number(self, name: str, default: float) -> float:
        found = self._found.get(name)
        return default if found is None else float(found)

    def is_off(self, name: str) -> bool:
        """Whether it is a flag that is false."""
        found = self._found[name]
        return found.ndim == 0 and float(found) == 0

    def count(self, prefix: str) -> int:
        """The number of layers whose names begin so."""
        found = {
            name[len(prefix) :].split("/")[0] for name in self.names if name.startswith(prefix)
        }
        return sum(number.isdecimal() for number in found)

    def linear(self, name: str) -> ForeignLinear:
        weight = self[f"{name}/weight"]
        bias = self.get(f"{name}/bias")
        return ForeignLinear(weight, torch.zeros(len(weight)) if bias is None else bias)

    def norm(self, name: str) -> ForeignNorm:
        return ForeignNorm(self[f"{name}/layer_norm/gamma"], self[f"{name}/layer_norm/beta"])


def _renamed(name: str) -> str:
    """The present name of a variable of version 1, which had those of TensorFlow."""
    for pattern, new in RENAMED:
        name = re.sub(pattern, new, name)
    return name


def _check(variables: _Variables) -> None:
    problems = []
    if variables.spec not in SPECS:
        what = f"is {variables.spec!r}; only encoder-decoder Transformers can be imported"
        problems.append(Problem("spec", what))
    for end, what in UNKNOWN.items():
        found = (name for name in variables.names if name.endswith(f"/{end}"))
        name = next((name for name in found if not variables.is_off(name)), None)
        if name is not None:
            problems.append(Problem(name, f"{what}: transept does not have it"))
    if problems:
        raise ConfigError(problems)


def _config(directory: Path) -> dict[str, Any]:
    path = directory / CONFIG
    return read_json(path) if path.is_file() else {}


def _vocabulary(
    directory: Path, side: str, model: bytes, config: Mapping[str, Any], bias: Tensor | None
) -> ForeignVocabulary:
    entries = _entries(directory, side)
    names = {key: config.get(f"{key}_token", usual) for key, usual in _USUAL.items()}
    if names["unk"] not in entries:
        entries.append(names["unk"])  # as CTranslate2 does
    if names["eos"] not in entries:
        raise DataError(f"{directory}: its {side} vocabulary has no entry {names['eos']}")
    pad = entries.index("<pad>") if "<pad>" in entries else None
    if bias is None or pad is None or pad >= len(bias) or bias[pad] > EXCLUDED:
        pad = None
    special = {names["bos"], "<blank>", "<pad>"} - {entries[pad] if pad is not None else ""}
    return ForeignVocabulary(
        entries=entries,
        model=model,
        eos=entries.index(names["eos"]),
        unk=entries.index(names["unk"]),
        pad=pad,
        silent=tuple(one for one in entries if one in special),
        begins=bool(config.get("add_source_bos", False)),
        ends=bool(config.get("add_source_eos", False)),
    )


_USUAL = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}


def _entries(directory: Path, side: str) -> list[str]:
    """The entries of one side: its own file, or the one that both share; JSON, or a line each."""
    for name in (f"{side}_vocabulary", "shared_vocabulary", "vocabulary"):
        path = directory / f"{name}.json"
        if path.is_file():
            try:
                entries = json.loads(path.read_bytes())
            except ValueError as error:
                raise DataError(f"{path}: is not JSON ({error})") from error
            if not isinstance(entries, list) or not all(isinstance(one, str) for one in entries):
                raise DataError(f"{path}: is not a list of strings")
            return entries
        path = directory / f"{name}.txt"
        if path.is_file():
            return read_bytes(path).decode("utf-8").removesuffix("\n").split("\n")
    raise DataError(f"{directory}: has no {side}_vocabulary.json and no shared_vocabulary.json")


def _start(target: ForeignVocabulary, config: Mapping[str, Any]) -> int:
    start = config.get("decoder_start_token", "<s>")
    if start not in target.entries:
        what = f"is {start!r}, which is not in the target vocabulary"
        raise ConfigError([Problem("decoder_start_token", what)])
    return target.entries.index(start)


def _positions(variables: _Variables, d_model: int) -> tuple[Tensor, Tensor] | None:
    """The tables of source and target. None if they are the paper's."""
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    source, target = (_stored(variables.get(name), d_model) for name in names)
    n = min(len(source), len(target))
    paper = sinusoids(torch.arange(n), d_model).float()
    if all(torch.allclose(table[:n], paper, atol=1e-6) for table in (source, target)):
        return None
    return source[:n], target[:n]


def _stored(table: Tensor | None, d_model: int) -> Float[Tensor, "L D"]:
    """The stored table, or the one that CTranslate2 computes if there is none.

    That begins at position 1 and has all sines first; its exponents are i / (d_model/2 − 1).
    """
    if table is not None:
        return table
    half = d_model // 2
    frequency = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / (half - 1))
    angle = torch.arange(1, N_POSITIONS + 1, dtype=torch.float64)[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def _layer(variables: _Variables, side: str, number: int) -> ForeignLayer:
    at = f"{side}/layer_{number}"

    def attention(name: str) -> ForeignAttention:
        *parts, output = [
            variables.linear(f"{at}/{name}/linear_{part}")
            for part in range(variables.count(f"{at}/{name}/linear_"))
        ]
        qkv = ForeignLinear(*(torch.cat(each) for each in zip(*parts, strict=True)))
        return ForeignAttention(qkv, output, variables.norm(f"{at}/{name}"))

    return ForeignLayer(
        attention("self_attention"),
        attention("attention") if side == "decoder" else None,
        variables.linear(f"{at}/ffn/linear_0"),
        variables.linear(f"{at}/ffn/linear_1"),
        variables.norm(f"{at}/ffn"),
    )
