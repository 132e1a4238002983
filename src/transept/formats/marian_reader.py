"""Read Marian's own `.npz` models, as OPUS-MT publishes them beside their vocabularies.

The file is a zip of plain arrays, which numpy reads without pickle. `special:model.yml` among them
holds the settings; only the few keys that matter are looked for, line by line.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from transept.errors import CheckpointError, ConfigError, DataError, Problem
from transept.formats.files import check_archive, check_entries, read_text
from transept.formats.foreign import (
    ForeignAttention,
    ForeignLayer,
    ForeignLinear,
    ForeignModel,
    ForeignNorm,
    ForeignVocabulary,
    shaped,
)
from transept.shapes import Float, Tensor

SETTINGS = "special:model.yml"
N_POSITIONS = 1024
POST_NORM = {"transformer-preprocess": "", "transformer-postprocess": "dan"}
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da"}
WANTED = {
    "type": "transformer",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": "false",
    "lemma-dim-emb": "0",
}
COUNTS = ("enc-depth", "dec-depth", "transformer-heads")
_KEY = re.compile(r"^([\w-]+):(.*)$", re.MULTILINE)
_COUNT = re.compile("[1-9][0-9]{0,5}")
_ID = re.compile("[0-9]{1,9}")


def read_npz(
    path: Path, vocabularies: tuple[Path, Path], models: tuple[bytes, bytes]
) -> ForeignModel:
    """The model of a `.npz` file.

    Args:
        path: The file.
        vocabularies: The `.yml` vocabularies of source and target.
        models: The sentencepiece models of source and target.
    """
    arrays = _Arrays(path)
    settings = arrays.settings()
    _check(settings, path)
    source_embedding = arrays.first("encoder_Wemb", "Wemb")
    target_embedding = arrays.first("decoder_Wemb", "Wemb")
    width = target_embedding.shape[1]
    shaped(source_embedding, (None, width), f"{path}: the source embedding")
    sizes = len(source_embedding), len(target_embedding)
    source, target = map(_vocabulary, vocabularies, models, sizes)
    # The layers come first: if they fit, the width is a plausible one for a table of positions.
    encoder, decoder = (
        [_layer(arrays, f"{side}_l{n + 1}", width) for n in range(int(settings[depth]))]
        for side, depth in (("encoder", "enc-depth"), ("decoder", "dec-depth"))
    )
    pre_norm = settings.get("transformer-preprocess") == "n"
    bias = "decoder_ff_logit_out_b"
    learned = "Wpos" in arrays
    positions = arrays.matrix("Wpos", None, width) if learned else sinusoids(N_POSITIONS, width)
    return ForeignModel(
        source=source,
        target=target,
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        projection=arrays.projection(target_embedding),
        projection_bias=arrays.vector(bias, len(target_embedding)) if bias in arrays else None,
        embeddings_are_scaled=True,
        positions=(positions, positions),
        encoder=encoder,
        decoder=decoder,
        final_norms=(arrays.norm("encoder_top", width), arrays.norm("decoder_top", width))
        if pre_norm
        else None,
        n_heads=int(settings["transformer-heads"]),
        activation=settings["transformer-ffn-activation"],
        start=None,
        about={"imported_from": path.name, "format": "Marian"},
    )


def _vocabulary(file: Path, model: bytes, size: int) -> ForeignVocabulary:
    entries = read_vocabulary(file)
    check_entries(entries, size, file)
    return ForeignVocabulary(
        entries=entries, model=model, eos=entries.index("</s>"), unk=entries.index("<unk>")
    )


def sinusoids(n_positions: int, d_model: int) -> Float[Tensor, "L D"]:
    """Marian's positional encoding: all sines, then all cosines, of 10000^(−i / (d_model/2 − 1)).

    The paper has d_model/2 in the exponent instead. Converters to other formats use the paper's
    frequencies for these models; this is the encoding that they were trained with.
    """
    half = d_model // 2
    frequency = 1e-4 ** (torch.arange(half, dtype=torch.float64) / (half - 1))
    angle = torch.arange(n_positions, dtype=torch.float64)[:, None] * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def _check(settings: Mapping[str, str], path: Path) -> None:
    problems = [
        Problem(key, f"is {settings[key]!r}; only {wanted!r} can be imported")
        for key, wanted in WANTED.items()
        if settings.get(key, wanted) != wanted
    ]
    norms = {key: settings.get(key, "") for key in POST_NORM}
    if norms not in (POST_NORM, PRE_NORM):
        what = f"are {norms}; only post-norm {POST_NORM} and pre-norm {PRE_NORM} can be imported"
        problems.append(Problem("transformer-preprocess, transformer-postprocess", what))
    if settings.get("transformer-postprocess-emb", "d") not in ("", "d"):
        what = f"is {settings['transformer-postprocess-emb']!r}: no norm of embeddings is known"
        problems.append(Problem("transformer-postprocess-emb", what))
    for key in COUNTS:
        if not _COUNT.fullmatch(settings.get(key, "")):
            what = f"is {settings.get(key, 'missing')!r}; it must be a number of at least 1"
            problems.append(Problem(key, what))
    activation = settings.get("transformer-ffn-activation", "missing")
    if activation not in ("relu", "swish"):
        what = f"is {activation!r}; only relu and swish can be imported"
        problems.append(Problem("transformer-ffn-activation", what))
    if problems:
        raise ConfigError([Problem(f"{path}: {one.key}", one.what) for one in problems])


class _Arrays:
    """The arrays of the file. One that is missing or has another shape is an error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        check_archive(path)
        try:
            with np.load(path, allow_pickle=False) as file:
                self._found = {name: file[name] for name in file.files}
        except Exception as error:  # numpy does not say which errors a damaged file raises
            raise CheckpointError(f"{path}: cannot be read ({error})") from error
        for name, array in self._found.items():
            if not isinstance(array, np.ndarray):
                raise CheckpointError(f"{path}: {name} is not an array; use another copy")

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def settings(self) -> dict[str, str]:
        if SETTINGS not in self._found:
            raise CheckpointError(f"{self._path}: has no {SETTINGS}: it is not a model of Marian")
        text = self._found[SETTINGS].tobytes().rstrip(b"\0").decode("utf-8", "replace")
        return {key: value.strip().strip("\"'") for key, value in _KEY.findall(text)}

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._found:
            raise CheckpointError(f"{self._path}: has no array {name}: use another copy")
        array = self._found[name]
        if array.dtype.kind != "f":
            raise CheckpointError(f"{self._path}: {name} has {array.dtype}, and must have floats")
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))

    def matrix(self, name: str, rows: int | None, columns: int | None) -> Tensor:
        return shaped(self[name], (rows, columns), f"{self._path}: {name}")

    def vector(self, name: str, size: int) -> Tensor:
        """A bias or the like, which Marian stores as a matrix of one row."""
        return shaped(self[name].flatten(), (size,), f"{self._path}: {name}")

    def first(self, *names: str) -> Tensor:
        """The first matrix of these that exists."""
        return self.matrix(next((name for name in names if name in self), names[0]), None, None)

    def linear(self, at: str, part: str, rows: int | None, columns: int | None) -> ForeignLinear:
        """Marian stores matrices as (in, out)."""
        weight = self.matrix(f"{at}_W{part}", columns, rows).T
        return ForeignLinear(weight, self.vector(f"{at}_b{part}", len(weight)))

    def norm(self, at: str, width: int) -> ForeignNorm:
        """The norm around a sub-layer, whose names say `_pre` if it comes first."""
        pre = "_pre" if f"{at}_ln_scale_pre" in self else ""
        return ForeignNorm(
            self.vector(f"{at}_ln_scale{pre}", width), self.vector(f"{at}_ln_bias{pre}", width)
        )

    def projection(self, embedding: Tensor) -> Tensor:
        size, width = embedding.shape
        if "decoder_ff_logit_out_Wt" in self:
            return self.matrix("decoder_ff_logit_out_Wt", size, width)
        if "decoder_ff_logit_out_W" in self:
            return self.matrix("decoder_ff_logit_out_W", width, size).T
        return embedding


def _layer(arrays: _Arrays, at: str, width: int) -> ForeignLayer:
    def attention(name: str) -> ForeignAttention:
        parts = [arrays.linear(f"{at}_{name}", part, width, width) for part in "qkv"]
        qkv = ForeignLinear(*(torch.cat(each) for each in zip(*parts, strict=True)))
        output = arrays.linear(f"{at}_{name}", "o", width, width)
        return ForeignAttention(qkv, output, arrays.norm(f"{at}_{name}_Wo", width))

    inner = arrays.linear(f"{at}_ffn", "1", None, width)
    return ForeignLayer(
        attention("self"),
        attention("context") if at.startswith("decoder") else None,
        inner,
        arrays.linear(f"{at}_ffn", "2", width, len(inner.weight)),
        arrays.norm(f"{at}_ffn_ffn", width),
    )


def read_vocabulary(path: Path) -> list[str]:
    """The entries of Marian's `.yml` vocabulary: lines of `entry: id`, some of them quoted."""
    by_id: dict[int, str] = {}
    # YAML writes a long key as `? entry` and its value on the next line as `: id`.
    text = re.sub(r"^\? (.*)\r?\n: ", r"\1: ", read_text(path), flags=re.MULTILINE)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        entry, separator, index = line.rstrip("\r").rpartition(":")
        if not separator or not _ID.fullmatch(index.strip()):
            raise DataError(f"{path}, line {number}: is not `entry: id`")
        if int(index) in by_id:
            raise DataError(f"{path}, line {number}: the id {int(index)} exists already")
        by_id[int(index)] = _unquoted(entry)
    if sorted(by_id) != list(range(len(by_id))):
        raise DataError(f"{path}: its ids are not 0 to {len(by_id) - 1}, each once")
    for special in ("</s>", "<unk>"):
        if special not in by_id.values():
            raise DataError(f"{path}: has no entry {special}")
    return [by_id[index] for index in range(len(by_id))]


def _unquoted(entry: str) -> str:
    if len(entry) >= 2 and entry[0] == entry[-1] == "'":
        return entry[1:-1].replace("''", "'")
    if len(entry) >= 2 and entry[0] == entry[-1] == '"':
        return re.sub(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", _unescaped, entry[1:-1])
    return entry


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    return {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}.get(code, code)
