"""Read CTranslate2 directories: `model.bin` and its vocabularies.

`model.bin` is a list of named arrays; `ctranslate2/specs/model_spec.py` writes it. Weights in int8
and int16 are stored with a scale, float16 and bfloat16 as they are. All become float32.
"""

import itertools
import math
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transept.errors import CheckpointError, ConfigError, DataError, Problem
from transept.formats.files import (
    MAX_SHARING,
    check_entries,
    read_bytes,
    read_json,
    read_json_value,
    read_text,
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
    shaped,
)
from transept.model.positions import sinusoids
from transept.shapes import Float, Tensor

MODEL, CONFIG = "model.bin", "config.json"
SIDES, STACKS = ("source", "target"), ("encoder", "decoder")
SPECS = {"TransformerSpec": None, "TransformerBase": 8, "TransformerBig": 16}
"""Kinds of models, with the number of heads where the file does not have it."""
MAX_VERSION, MAX_RANK = 6, 8
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
    target_embedding = variables.tensor("decoder/embeddings/weight", None, None)
    size, width = target_embedding.shape
    source_embedding = variables.first(
        ("encoder/embeddings_0/weight", "encoder/embeddings/weight"), None, width
    )
    bias = variables.get("decoder/projection/bias", size)
    source, target = (
        _vocabulary(directory, side, model, config, bias, len(rows))
        for side, model, rows in zip(
            SIDES, models, (source_embedding, target_embedding), strict=True
        )
    )
    # The layers come first: if they fit, the width is a plausible one for a table of positions.
    encoder, decoder = (_layers(variables, side, width) for side in STACKS)
    pre_norm = variables.number("encoder/pre_norm", 1) != 0
    zero_start = variables.number("decoder/start_from_zero_embedding", 0) != 0
    return ForeignModel(
        source=source,
        target=target,
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        projection=variables.first(
            ("decoder/projection/weight", "decoder/embeddings/weight"), size, width
        ),
        projection_bias=bias,
        embeddings_are_scaled=variables.number("encoder/scale_embeddings", 1) != 0,
        positions=_positions(variables, width),
        encoder=encoder,
        decoder=decoder,
        final_norms=(variables.norm("encoder", width), variables.norm("decoder", width))
        if pre_norm
        else None,
        n_heads=variables.number("encoder/num_heads", SPECS[variables.spec] or 8),
        activation=ACTIVATIONS.get(variables.number("encoder/activation", 0), "unknown"),
        start=None if zero_start else _start(target, config, directory / CONFIG),
        about={"imported_from": directory.name, "format": "CTranslate2"},
    )


class _Variables(NamedTensors):
    """The arrays of a `model.bin`, dequantized when they are asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._content = memoryview(read_bytes(path))
        self._at = 0
        try:
            self._read()
        except (ValueError, LookupError) as error:
            raise CheckpointError(
                f"{path}: is damaged, or not a model of CTranslate2 ({error})"
            ) from error

    def _read(self) -> None:
        self.version = self._number("I")
        if not 1 <= self.version <= MAX_VERSION:
            raise ValueError(f"its version is {self.version}, and must be 1 to {MAX_VERSION}")
        # Version 1 had one kind of model.
        self.spec = self._string() if self.version >= 2 else "TransformerBase"
        self.revision = self._number("I") if self.version >= 2 else 1
        for _ in range(self._number("I")):
            name = self._string() if self.version > 1 else _renamed(self._string())
            self._found[name] = self._array(name)
        for _ in range(self._number("I") if self.version >= 3 else 0):
            alias, name = self._string(), self._string()
            self._found[alias] = self._found[name]
            # The scale of a shared matrix has no alias.
            if f"{name}_scale" in self._found:
                self._found.setdefault(f"{alias}_scale", self._found[f"{name}_scale"])
        if self._at != len(self._content):
            raise ValueError(f"{len(self._content) - self._at:,} bytes are left over")
        if sum(one.nbytes for one in self._found.values()) > MAX_SHARING * len(self._content):
            raise ValueError("too many variables are aliases of others")

    def _array(self, name: str) -> Tensor:
        shape = [self._number("I") for _ in range(self._number("B"))]
        if self.version >= 4:
            dtype = TYPES[self._number("B")]
            n_bytes = self._number("I")
        else:
            size = self._number("B")
            dtype, n_bytes = BY_SIZE[size], size * self._number("I")
        if len(shape) > MAX_RANK or math.prod(shape) * dtype.itemsize != n_bytes:
            raise ValueError(f"{name} has the shape {shape[:MAX_RANK]} and {n_bytes:,} bytes")
        data = bytearray(self._bytes(n_bytes))
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        return flat.view(shape)

    def _bytes(self, n: int) -> memoryview:
        if self._at + n > len(self._content):
            raise ValueError("it ends too early")
        self._at += n
        return self._content[self._at - n : self._at]

    def _number(self, form: str) -> int:
        form = f"<{form}"
        return int(struct.unpack(form, self._bytes(struct.calcsize(form)))[0])

    def _string(self) -> str:
        text = bytes(self._bytes(self._number("H"))).rstrip(b"\0").decode()
        if not text.isprintable():
            raise ValueError(f"{text!r} is not a name")
        return text

    @property
    def names(self) -> list[str]:
        return list(self._found)

    def get(self, name: str, *shape: int | None) -> Tensor | None:
        """An array in float32, if there is one of this name."""
        found = self._found.get(name)
        if found is None:
            return None
        shaped(found, shape, f"{self.path}: {name}")
        if found.is_floating_point():
            return found.float()
        scale = self._found.get(f"{name}_scale")
        if scale is None and found.dtype == torch.int16:
            scale = torch.tensor(INT16_SCALE)
        if scale is None:
            raise CheckpointError(
                f"{self.path}: {name} has integers without a scale; it is damaged"
            )
        scale = scale.flatten()
        if len(scale) != 1:
            shaped(scale, found.shape[:1], f"{self.path}: {name}_scale")
            scale = scale.view(-1, *[1] * (found.ndim - 1))
        return found.float() / scale.float()

    def number(self, name: str, default: int) -> int:
        found = self._found.get(name)
        if found is None:
            return default
        if found.numel() != 1 or not float(found).is_integer():
            raise CheckpointError(f"{self.path}: {name} must be a whole number; it is damaged")
        return int(found)

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

    def projections(self, prefix: str) -> list[str]:
        """The names of projections that begin so and are numbered from 0."""
        names = (f"{prefix}{number}" for number in itertools.count())
        return list(itertools.takewhile(lambda name: f"{name}/weight" in self._found, names))

    def linear(self, name: str, rows: int | None, columns: int) -> ForeignLinear:
        weight = self.tensor(f"{name}/weight", rows, columns)
        bias = self.get(f"{name}/bias", len(weight))
        return ForeignLinear(weight, torch.zeros(len(weight)) if bias is None else bias)

    def norm(self, name: str, width: int) -> ForeignNorm:
        at = f"{name}/layer_norm"
        return ForeignNorm(self.tensor(f"{at}/gamma", width), self.tensor(f"{at}/beta", width))


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
        raise ConfigError([Problem(f"{variables.path}: {one.key}", one.what) for one in problems])


DEFAULTS: Mapping[str, Any] = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "decoder_start_token": "<s>",
    "add_source_bos": False,
    "add_source_eos": False,
}
"""The keys of config.json that matter, and their values if it lacks them."""


def _config(directory: Path) -> dict[str, Any]:
    path = directory / CONFIG
    found = read_json(path) if path.is_file() else {}
    config = {key: found.get(key, usual) for key, usual in DEFAULTS.items()}
    for key, usual in DEFAULTS.items():
        if type(config[key]) is not type(usual):
            what = f"is {config[key]!r}; it must be of the kind of {usual!r}"
            raise ConfigError([Problem(f"{path}: {key}", what)])
    return config


def _vocabulary(
    directory: Path, side: str, model: bytes, config: Mapping[str, Any], bias: Tensor | None,
    rows: int,
) -> ForeignVocabulary:  # fmt: skip
    entries, path = _entries(directory, side)
    bos, eos, unk = (config[f"{key}_token"] for key in ("bos", "eos", "unk"))
    if unk not in entries:
        entries.append(unk)  # as CTranslate2 does
    check_entries(entries, rows, path)
    for wanted in (eos, "<s>") if config["add_source_bos"] else (eos,):
        if wanted not in entries:
            raise DataError(f"{path}: has no entry {wanted!r}; use another copy")
    pad = entries.index("<pad>") if "<pad>" in entries else None
    if bias is None or pad is None or pad >= len(bias) or bias[pad] > EXCLUDED:
        pad = None
    special = {bos, "<blank>", "<pad>"} - {entries[pad] if pad is not None else ""}
    return ForeignVocabulary(
        entries=entries,
        model=model,
        eos=entries.index(eos),
        unk=entries.index(unk),
        pad=pad,
        silent=tuple(one for one in entries if one in special),
        begins=config["add_source_bos"],
        ends=config["add_source_eos"],
    )


def _entries(directory: Path, side: str) -> tuple[list[str], Path]:
    """The entries of one side: its own file, or the one that both share; JSON, or a line each."""
    for name in (f"{side}_vocabulary", "shared_vocabulary", "vocabulary"):
        path = directory / f"{name}.json"
        if path.is_file():
            entries = read_json_value(path)
            if not isinstance(entries, list) or not all(isinstance(one, str) for one in entries):
                raise DataError(f"{path}: is not a list of strings")
            return entries, path
        path = directory / f"{name}.txt"
        if path.is_file():
            return read_text(path).removesuffix("\n").split("\n"), path
    raise DataError(f"{directory}: has no {side}_vocabulary.json and no shared_vocabulary.json")


def _start(target: ForeignVocabulary, config: Mapping[str, Any], path: Path) -> int:
    start = config["decoder_start_token"]
    if start not in target.entries:
        what = f"is {start!r}, which is not in the target vocabulary"
        raise ConfigError([Problem(f"{path}: decoder_start_token", what)])
    return target.entries.index(start)


def _positions(variables: _Variables, d_model: int) -> tuple[Tensor, Tensor] | None:
    """The tables of source and target. None if they are the paper's."""
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    source, target = (_stored(variables.get(name, None, d_model), d_model) for name in names)
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


def _layers(variables: _Variables, side: str, width: int) -> list[ForeignLayer]:
    depth = variables.count(f"{side}/layer_")
    if not depth:
        raise CheckpointError(f"{variables.path}: has no {side}/layer_0: use another copy")
    return [_layer(variables, side, number, width) for number in range(depth)]


def _layer(variables: _Variables, side: str, number: int, width: int) -> ForeignLayer:
    at = f"{side}/layer_{number}"

    def attention(name: str) -> ForeignAttention:
        names = variables.projections(f"{at}/{name}/linear_")
        if len(names) < 2:
            raise CheckpointError(f"{variables.path}: {at}/{name} lacks projections")
        parts = [variables.linear(one, None, width) for one in names[:-1]]
        qkv = ForeignLinear(*(torch.cat(each) for each in zip(*parts, strict=True)))
        shaped(qkv.weight, (3 * width, width), f"{variables.path}: {at}/{name}: Q, K and V")
        output = variables.linear(names[-1], width, width)
        return ForeignAttention(qkv, output, variables.norm(f"{at}/{name}", width))

    inner = variables.linear(f"{at}/ffn/linear_0", None, width)
    return ForeignLayer(
        attention("self_attention"),
        attention("attention") if side == "decoder" else None,
        inner,
        variables.linear(f"{at}/ffn/linear_1", width, len(inner.weight)),
        variables.norm(f"{at}/ffn", width),
    )
