"""Read Marian's own `.npz` models, as OPUS-MT publishes them beside their vocabularies.

The file is a zip of plain arrays, which numpy reads without pickle. `special:model.yml` among them
holds the settings; only the few keys that matter are looked for, line by line.
"""

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from transept.errors import CheckpointError, ConfigError, DataError, Problem
from transept.formats.files import read_bytes
from transept.formats.foreign import (
    ForeignAttention,
    ForeignLayer,
    ForeignLinear,
    ForeignModel,
    ForeignNorm,
    ForeignVocabulary,
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
_KEY = re.compile(r"^([\w-]+): *(.*?) *$", re.MULTILINE)


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
    entries = [read_vocabulary(one) for one in vocabularies]
    source, target = (
        ForeignVocabulary(
            entries=each,
            model=model,
            eos=each.index("</s>"),
            unk=each.index("<unk>"),
        )
        for each, model in zip(entries, models, strict=True)
    )
    source_embedding = arrays.first("encoder_Wemb", "Wemb")
    target_embedding = arrays.first("decoder_Wemb", "Wemb")
    learned = arrays.get("Wpos")
    positions = sinusoids(N_POSITIONS, target_embedding.shape[1]) if learned is None else learned
    pre_norm = settings["transformer-preprocess"] == "n"
    return ForeignModel(
        source=source,
        target=target,
        source_embedding=source_embedding,
        target_embedding=target_embedding,
        projection=arrays.projection(target_embedding),
        projection_bias=arrays.get("decoder_ff_logit_out_b"),
        embeddings_are_scaled=True,
        positions=(positions, positions),
        encoder=[_layer(arrays, f"encoder_l{n + 1}") for n in range(int(settings["enc-depth"]))],
        decoder=[_layer(arrays, f"decoder_l{n + 1}") for n in range(int(settings["dec-depth"]))],
        final_norms=(arrays.norm("encoder_top"), arrays.norm("decoder_top")) if pre_norm else None,
        n_heads=int(settings["transformer-heads"]),
        activation=settings["transformer-ffn-activation"],
        start=None,
        about={"imported_from": path.name, "format": "Marian"},
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
    activation = settings.get("transformer-ffn-activation", "swish")
    if activation not in ("relu", "swish"):
        what = f"is {activation!r}; only relu and swish can be imported"
        problems.append(Problem("transformer-ffn-activation", what))
    needed = ("enc-depth", "dec-depth", "transformer-heads", "transformer-ffn-activation")
    problems += [Problem(key, "is missing") for key in needed if key not in settings]
    if problems:
        raise ConfigError([Problem(f"{path}: {one.key}", one.what) for one in problems])


class _Arrays:
    """The arrays of the file, as tensors."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with np.load(path, allow_pickle=False) as file:
                self._found = {name: file[name] for name in file.files}
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise CheckpointError(f"{path}: cannot be read ({error})") from error

    def settings(self) -> dict[str, str]:
        if SETTINGS not in self._found:
            raise CheckpointError(f"{self._path}: has no {SETTINGS}: it is not a model of Marian")
        text = self._found[SETTINGS].tobytes().rstrip(b"\0").decode("utf-8", "replace")
        return {key: value.strip("\"'") for key, value in _KEY.findall(text)}

    def get(self, name: str) -> Tensor | None:
        array = self._found.get(name)
        return None if array is None else torch.from_numpy(np.ascontiguousarray(array)).float()

    def __getitem__(self, name: str) -> Tensor:
        found = self.get(name)
        if found is None:
            raise CheckpointError(f"{self._path}: has no array {name}: use another copy")
        return found

    def first(self, *names: str) -> Tensor:
        return self[next((name for name in names if name in self._found), names[0])]

    def linear(self, at: str, part: str) -> ForeignLinear:
        """Marian stores matrices as (in, out)."""
        return ForeignLinear(self[f"{at}_W{part}"].T, self[f"{at}_b{part}"].flatten())

    def norm(self, at: str) -> ForeignNorm:
        """The norm around a sub-layer, whose names say `_pre` if it comes first."""
        pre = "_pre" if f"{at}_ln_scale_pre" in self._found else ""
        return ForeignNorm(
            self[f"{at}_ln_scale{pre}"].flatten(), self[f"{at}_ln_bias{pre}"].flatten()
        )

    def projection(self, embedding: Tensor) -> Tensor:
        tied, own = self.get("decoder_ff_logit_out_Wt"), self.get("decoder_ff_logit_out_W")
        if tied is not None:
            return tied
        return embedding if own is None else own.T


def _layer(arrays: _Arrays, at: str) -> ForeignLayer:
    def attention(name: str) -> ForeignAttention:
        parts = [arrays.linear(f"{at}_{name}", part) for part in "qkv"]
        qkv = ForeignLinear(*(torch.cat(each) for each in zip(*parts, strict=True)))
        output = arrays.linear(f"{at}_{name}", "o")
        return ForeignAttention(qkv, output, arrays.norm(f"{at}_{name}_Wo"))

    return ForeignLayer(
        attention("self"),
        attention("context") if at.startswith("decoder") else None,
        arrays.linear(f"{at}_ffn", "1"),
        arrays.linear(f"{at}_ffn", "2"),
        arrays.norm(f"{at}_ffn_ffn"),
    )


def read_vocabulary(path: Path) -> list[str]:
    """The entries of Marian's `.yml` vocabulary: lines of `entry: id`, some of them quoted."""
    by_id: dict[int, str] = {}
    text = read_bytes(path).decode("utf-8")
    # YAML writes a long key as `? entry` and its value on the next line as `: id`.
    text = re.sub(r"^\? (.*)\r?\n: ", r"\1: ", text, flags=re.MULTILINE)
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        entry, separator, index = line.rstrip("\r").rpartition(":")
        if not separator or not index.strip().isdecimal():
            raise DataError(f"{path}, line {number}: is not `entry: id`; use another copy")
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
