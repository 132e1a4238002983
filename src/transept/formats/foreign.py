"""A model of another program on its way into a model directory.

Each reader (`huggingface`, `marian`, `ctranslate2_reader`) brings its format into the form of this
module: weights of layers as PyTorch's `nn.Linear` has them, embeddings in the program's own order
of ids, and the order in which transept wants the ids. `build` makes a network of it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from transept import config
from transept.checkpoint import (
    CONFIG,
    TARGET_TOKENIZER,
    TOKENIZER,
    WEIGHTS,
    load_weights,
    weights_of,
    write_directory,
)
from transept.errors import CheckpointError, ConfigError, DataError, Problem, VocabularyError
from transept.experiment import Experiment
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.shapes import Float, Tensor
from transept.text.imported import ImportedTokenizer
from transept.text.tokenizer import EOS_ID, PAD, Tokenizer

EXCLUDED = -1e4
"""An output bias at or below this excludes an entry: its probability is zero in any precision."""


class ForeignLinear(NamedTuple):
    """A projection: `x @ weight.T + bias`."""

    weight: Float[Tensor, "out in"]
    bias: Float[Tensor, " out"]


class ForeignNorm(NamedTuple):
    """A layer normalization."""

    scale: Float[Tensor, " D"]
    shift: Float[Tensor, " D"]


@dataclass(frozen=True, slots=True)
class ForeignAttention:
    """One attention sub-layer: `qkv` has the rows of queries, keys and values, in this order."""

    qkv: ForeignLinear
    output: ForeignLinear
    norm: ForeignNorm


@dataclass(frozen=True, slots=True)
class ForeignLayer:
    """An encoder layer, or a decoder layer if it attends to the source."""

    self_attention: ForeignAttention
    source_attention: ForeignAttention | None
    inner: ForeignLinear
    outer: ForeignLinear
    norm: ForeignNorm


@dataclass(frozen=True, slots=True)
class ForeignVocabulary:
    """Entries in the program's order, and which of them are special."""

    entries: Sequence[str]
    model: bytes
    """The sentencepiece model that cuts text into entries."""
    eos: int
    unk: int
    pad: int | None = None
    """An entry for padding that the program never writes, if it excludes it from the softmax."""
    silent: tuple[str, ...] = ()
    """Other entries that stand for no text."""
    begins: bool = False
    """Whether a source begins with the start entry `<s>`."""
    ends: bool = True
    """Whether a source ends with the end entry."""

    def __post_init__(self) -> None:
        special = [index for index in (self.pad, self.eos, self.unk) if index is not None]
        if len({*special}) < len(special):
            raise DataError(
                f"pad, eos and unk are the entries {self.pad}, {self.eos} and {self.unk} of the "
                "vocabulary; they must be different entries"
            )

    @property
    def order(self) -> list[int | None]:
        """For each of our ids, theirs. Without a padding entry of theirs, ours is new (None)."""
        special = [self.pad, self.eos, self.unk]
        return [*special, *(i for i in range(len(self.entries)) if i not in special)]

    def our_id(self, theirs: int) -> int:
        """Our id of one of their entries."""
        return self.order.index(theirs)

    def tokenizer(self) -> Tokenizer:
        """The vocabulary with our order of ids."""
        new = PAD if PAD not in self.entries else "<padding>"
        entries = [new if index is None else self.entries[index] for index in self.order]
        try:
            ours = Tokenizer(self.model)
        except VocabularyError:
            pass
        else:
            if ours.pieces_of(range(ours.vocab_size)) == entries and self.ends and not self.begins:
                return ours
        return ImportedTokenizer(
            self.model,
            entries,
            self.silent,
            before_source=[self.our_id(self.entries.index("<s>"))] if self.begins else [],
            after_source=[EOS_ID] if self.ends else [],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignModel:
    """Everything that a reader found."""

    source: ForeignVocabulary
    target: ForeignVocabulary
    source_embedding: Float[Tensor, "V D"]
    target_embedding: Float[Tensor, "V D"]
    projection: Float[Tensor, "V D"]
    projection_bias: Float[Tensor, " V"] | None
    embeddings_are_scaled: bool
    """Whether the program multiplies embeddings by √d_model, as the paper does."""
    positions: tuple[Float[Tensor, "L D"], Float[Tensor, "L D"]] | None
    """The tables of positional encodings of source and target. None: the paper's formula."""
    encoder: Sequence[ForeignLayer]
    decoder: Sequence[ForeignLayer]
    final_norms: tuple[ForeignNorm, ForeignNorm] | None
    """Of encoder and decoder, for a pre-norm network."""
    n_heads: int
    activation: str
    start: int | None
    """The target entry that the decoder reads first; None: a zero vector."""
    about: Mapping[str, Any] = field(default_factory=dict)


def shaped(tensor: Tensor, shape: Sequence[int | None], name: str) -> Tensor:
    """The tensor, or an error that names it if it has another shape. None: any size."""
    if tensor.ndim != len(shape) or any(
        size not in (None, found) for size, found in zip(shape, tensor.shape, strict=True)
    ):
        wanted = ", ".join("n" if size is None else str(size) for size in shape)
        raise CheckpointError(
            f"{name} has the shape {list(tensor.shape)}, and must have [{wanted}]: "
            "the files are damaged, or not of one model"
        )
    return tensor


class NamedTensors(ABC):
    """The tensors of a file. One that is missing or has another shape is an error that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[str, Tensor] = {}

    @abstractmethod
    def get(self, name: str, *shape: int | None) -> Tensor | None:
        """A tensor in float32, if there is one of this name. None: any size."""

    def tensor(self, name: str, *shape: int | None) -> Tensor:
        """A tensor in float32."""
        found = self.get(name, *shape)
        if found is None:
            raise CheckpointError(
                f"{self.path}: has no {name}: it is damaged, or another kind of model"
            )
        return found

    def first(self, names: Sequence[str], *shape: int | None) -> Tensor:
        """The first of these that exists."""
        return self.tensor(next((one for one in names if one in self._found), names[0]), *shape)


def build(foreign: ForeignModel) -> Transformer:
    """The network with these weights, or an error that names what cannot be represented."""
    source, target = foreign.source.order, foreign.target.order
    embeddings = [_reordered(foreign.source_embedding, source)]
    embeddings.append(_reordered(foreign.target_embedding, target))
    projection = _reordered(foreign.projection, target)
    if not foreign.embeddings_are_scaled:
        embeddings = [one / math.sqrt(one.shape[1]) for one in embeddings]
    bias = _output_bias(foreign, target)
    layers = [*foreign.encoder, *foreign.decoder]
    attentions = [one for layer in layers for one in _attentions(layer)]
    has_bias = any(one.qkv.bias.any() or one.output.bias.any() for one in attentions)
    model_config = ModelConfig(
        vocab_size=len(target),
        source_vocab_size=None if len(source) == len(target) else len(source),
        n_layers=len(foreign.encoder),
        n_decoder_layers=None
        if len(foreign.decoder) == len(foreign.encoder)
        else len(foreign.decoder),
        d_model=projection.shape[1],
        d_ff=layers[0].inner.weight.shape[0],
        n_heads=foreign.n_heads,
        norm="post" if foreign.final_norms is None else "pre",
        positions="sinusoidal" if foreign.positions is None else "learned",
        max_positions=1024 if foreign.positions is None else len(foreign.positions[0]),
        tied_embeddings=_ties(embeddings, projection),
        activation=_activation(foreign.activation),
        attention_bias=bool(has_bias),
        output_bias=bias is not None,
        decoder_start="zero" if foreign.start is None else "token",
        bos_id=3 if foreign.start is None else foreign.target.our_id(foreign.start),
    )
    model = Transformer.uninitialised(model_config)
    weights = {
        "source_embedding.weight": embeddings[0],
        "target_embedding.weight": embeddings[1],
        "projection.weight": projection,
        **({} if bias is None else {"projection.bias": bias}),
        **_position_weights(foreign.positions),
        **dict(_stack_weights("encoder", foreign.encoder, model_config)),
        **dict(_stack_weights("decoder", foreign.decoder, model_config)),
    }
    for name, norm in zip(("encoder", "decoder"), foreign.final_norms or (), strict=False):
        weights |= {f"{name}.norm.weight": norm.scale, f"{name}.norm.bias": norm.shift}
    wanted = {name for name, _ in model.named_parameters()}
    load_weights(
        model,
        {name: weight.float() for name, weight in weights.items() if name in wanted},
        Path(str(foreign.about.get("imported_from", "the model"))),
    )
    return model


def save(foreign: ForeignModel, output: Path) -> Transformer:
    """Write the model directory, at once or not at all."""
    if output.exists():
        raise CheckpointError(f"{output}: already exists; choose another directory")
    model = build(foreign)
    source, target = foreign.source.tokenizer(), foreign.target.tokenizer()
    tokenizers = {TOKENIZER: source}
    if source.sha256 != target.sha256:
        tokenizers[TARGET_TOKENIZER] = target
    with TemporaryDirectory() as folder:
        for name, tokenizer in tokenizers.items():
            tokenizer.save(Path(folder) / name)
        write_directory(
            output,
            tensors={WEIGHTS: weights_of(model)},
            texts={CONFIG: config.dump(Experiment(model=model.config))},
            folders={name: Path(folder) / name for name in tokenizers},
            about={"step": 0, **foreign.about},
        )
    return model


def _reordered(rows: Tensor, order: Sequence[int | None]) -> Tensor:
    """The rows in our order of ids; a new entry has a row of zeros."""
    zero = rows.new_zeros(1, *rows.shape[1:])
    index = [len(rows) if theirs is None else theirs for theirs in order]
    if len(rows) != len([one for one in order if one is not None]):
        raise CheckpointError(
            f"the embedding matrix has {len(rows):,} rows and the vocabulary "
            f"{len(order):,} entries: the files are not of one model"
        )
    return torch.cat([rows, zero])[index]


def _output_bias(foreign: ForeignModel, order: Sequence[int | None]) -> Tensor | None:
    """The bias in our order, or None where it would change nothing."""
    if foreign.projection_bias is None:
        return None
    bias = _reordered(foreign.projection_bias.flatten(), order)
    bias[0] = 0  # our padding is excluded from the softmax by itself
    return bias if bias.any() else None


def _ties(embeddings: Sequence[Tensor], projection: Tensor) -> Any:
    """Which of the three matrices are equal. The row of padding is never read, and ignored."""
    source, target = embeddings
    if not torch.equal(target[1:], projection[1:]):
        return "none"
    same = source.shape == target.shape and torch.equal(source[1:], target[1:])
    return "three-way" if same else "two-way"


def _activation(name: str) -> Any:
    known = {"relu": "relu", "swish": "swish", "silu": "swish"}
    if name not in known:
        raise ConfigError(
            [Problem("activation", f"{name!r} is not one that transept has: relu, swish (silu)")]
        )
    return known[name]


def _position_weights(tables: tuple[Tensor, Tensor] | None) -> dict[str, Tensor]:
    names = ("source_positions.weight", "target_positions.weight")
    return dict(zip(names, tables or (), strict=False))


def _attentions(layer: ForeignLayer) -> Iterator[ForeignAttention]:
    yield layer.self_attention
    if layer.source_attention is not None:
        yield layer.source_attention


def _stack_weights(
    name: str, layers: Sequence[ForeignLayer], model: ModelConfig
) -> Iterator[tuple[str, Tensor]]:
    for number, layer in enumerate(layers):
        at = f"{name}.layers.{number}"
        norms = [attention.norm for attention in _attentions(layer)] + [layer.norm]
        for index, norm in enumerate(norms):
            yield f"{at}.residuals.{index}.norm.weight", norm.scale
            yield f"{at}.residuals.{index}.norm.bias", norm.shift
        for place, linear in (("w_1", layer.inner), ("w_2", layer.outer)):
            yield f"{at}.feed_forward.{place}.weight", linear.weight
            yield f"{at}.feed_forward.{place}.bias", linear.bias
        for part, attention in zip(
            ("self_attention", "source_attention"), _attentions(layer), strict=False
        ):
            for place, linear in (("w_qkv", attention.qkv), ("w_o", attention.output)):
                yield f"{at}.{part}.{place}.weight", linear.weight
                if model.attention_bias:
                    yield f"{at}.{part}.{place}.bias", linear.bias


# --- the order of dimensions -----------------------------------------------------------------


def interleaved(d_model: int) -> list[int]:
    """For each dimension of the paper's positional encoding, the one of the half-split form.

    The paper alternates sine and cosine; Marian and others have all sines first. The two networks
    are the same up to this permutation of the residual stream.
    """
    half = d_model // 2
    return [index // 2 + half * (index % 2) for index in range(d_model)]


def permuted(foreign: ForeignModel, order: Sequence[int]) -> ForeignModel:
    """The same network with the dimensions of its residual stream in another order."""
    index = torch.tensor(order)

    def reads(linear: ForeignLinear) -> ForeignLinear:
        return ForeignLinear(linear.weight[:, index], linear.bias)

    def writes(linear: ForeignLinear) -> ForeignLinear:
        return ForeignLinear(linear.weight[index], linear.bias[index])

    def norm(one: ForeignNorm) -> ForeignNorm:
        return ForeignNorm(one.scale[index], one.shift[index])

    def attention(one: ForeignAttention) -> ForeignAttention:
        return ForeignAttention(reads(one.qkv), writes(one.output), norm(one.norm))

    def layer(one: ForeignLayer) -> ForeignLayer:
        source = None if one.source_attention is None else attention(one.source_attention)
        return ForeignLayer(
            attention(one.self_attention), source, reads(one.inner), writes(one.outer),
            norm(one.norm),
        )  # fmt: skip

    finals = foreign.final_norms
    return replace(
        foreign,
        source_embedding=foreign.source_embedding[:, index],
        target_embedding=foreign.target_embedding[:, index],
        projection=foreign.projection[:, index],
        encoder=[*map(layer, foreign.encoder)],
        decoder=[*map(layer, foreign.decoder)],
        final_norms=None if finals is None else (norm(finals[0]), norm(finals[1])),
    )
