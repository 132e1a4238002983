"""The encoder and decoder stacks (section 3.1), the whole network, and its initialization."""

from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import nn

from transept.errors import ConfigError, DataError, Problem, VocabularyError
from transept.model.attention import Attend, MultiHeadAttention, fused_attention
from transept.model.config import ModelConfig
from transept.model.layers import (
    LAYER_NORM_EPSILON,
    RESIDUALS,
    Dropout,
    Embedding,
    FeedForward,
)
from transept.model.packing import Band, Blocks, Layout, Tokens, self_mask, visible
from transept.model.positions import LearnedPositions, Positions, SinusoidalPositions
from transept.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The encoder's output and the layout of its sentences, as the decoder reads them."""

    states: Float[Tensor, "Ns D"]
    layout: Layout


def _attention(config: ModelConfig, attend: Attend) -> MultiHeadAttention:
    return MultiHeadAttention(
        config.d_model,
        config.n_heads,
        config.d_k,
        config.d_v,
        dropout=config.attention_dropout,
        bias=config.attention_bias,
        attend=attend,
    )


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        dropout=config.activation_dropout,
    )


class EncoderLayer(nn.Module):
    """Multi-head self-attention and a feed-forward network, each with a residual connection."""

    def __init__(self, config: ModelConfig, attend: Attend) -> None:
        super().__init__()
        residual = partial(RESIDUALS[config.norm], config.d_model, config.dropout)
        self.self_attention = _attention(config, attend)
        self.feed_forward = _feed_forward(config)
        self.residuals = nn.ModuleList([residual(), residual()])

    def forward(
        self, x: Float[Tensor, "N D"], layout: Layout, mask: Bool[Tensor, "B S S"] | Blocks
    ) -> Float[Tensor, "N D"]:
        """One layer of the encoder."""
        x = self.residuals[0](x, lambda x: self.self_attention(x, None, layout, layout, mask))
        out: Tensor = self.residuals[1](x, self.feed_forward)
        return out


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, and a feed-forward network."""

    def __init__(self, config: ModelConfig, attend: Attend) -> None:
        super().__init__()
        residual = partial(RESIDUALS[config.norm], config.d_model, config.dropout)
        self.self_attention = _attention(config, attend)
        self.source_attention = _attention(config, attend)
        self.feed_forward = _feed_forward(config)
        self.residuals = nn.ModuleList([residual(), residual(), residual()])

    def forward(
        self,
        y: Float[Tensor, "Nt D"],
        layout: Layout,
        mask: Bool[Tensor, "B T T"] | Blocks,
        memory: Memory,
        source_mask: Bool[Tensor, "B T S"],
    ) -> Float[Tensor, "Nt D"]:
        """One layer of the decoder."""
        y = self.residuals[0](y, lambda y: self.self_attention(y, None, layout, layout, mask))
        y = self.residuals[1](
            y,
            lambda y: self.source_attention(y, memory.states, layout, memory.layout, source_mask),
        )
        out: Tensor = self.residuals[2](y, self.feed_forward)
        return out


def _final_norm(config: ModelConfig) -> nn.Module:
    """A final layer normalization for pre-norm, whose residual stream is not normalized."""
    if config.norm == "pre":
        return nn.LayerNorm(config.d_model, eps=LAYER_NORM_EPSILON)
    return nn.Identity()


class Encoder(nn.Module):
    """N encoder layers."""

    def __init__(self, config: ModelConfig, attend: Attend) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config, attend) for _ in range(config.n_layers))
        self.norm = _final_norm(config)
        r = config.encoder_window
        self.band = Band() if r is None else Band.restricted(r)

    @property
    def stack(self) -> list[EncoderLayer]:
        """The layers with their type, which `nn.ModuleList` loses."""
        return cast(list[EncoderLayer], list(self.layers))

    def forward(self, x: Float[Tensor, "N D"], layout: Layout) -> Float[Tensor, "N D"]:
        """Run the stack."""
        mask = self_mask(layout, self.band)
        for layer in self.layers:
            x = layer(x, layout, mask)
        out: Tensor = self.norm(x)
        return out


class Decoder(nn.Module):
    """N decoder layers."""

    def __init__(self, config: ModelConfig, attend: Attend) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(config, attend) for _ in range(config.decoder_depth)
        )
        self.norm = _final_norm(config)
        r = config.decoder_window
        self.band = Band.causal() if r is None else Band.causal_restricted(r)

    @property
    def stack(self) -> list[DecoderLayer]:
        """The layers with their type, which `nn.ModuleList` loses."""
        return cast(list[DecoderLayer], list(self.layers))

    def forward(
        self, y: Float[Tensor, "Nt D"], layout: Layout, memory: Memory
    ) -> Float[Tensor, "Nt D"]:
        """Run the stack."""
        mask = self_mask(layout, self.band)
        source_mask = visible(layout, memory.layout, Band())
        for layer in self.layers:
            y = layer(y, layout, mask, memory, source_mask)
        out: Tensor = self.norm(y)
        return out


class Transformer(nn.Module):
    """The Transformer of section 3.

    Example:
        >>> model = Transformer(ModelConfig.preset("tiny", vocab_size=100))
        >>> source_ids, target_ids = torch.tensor([[5, 6, 1]]), torch.tensor([[7, 8, 9, 1]])
        >>> model(source_ids, target_ids).shape
        torch.Size([1, 4, 100])
    """

    def __init__(self, config: ModelConfig, *, attend: Attend = fused_attention) -> None:
        super().__init__()
        if not config.sized:
            what = "0 takes the size from a corpus; without a corpus, set the size"
            raise ConfigError([Problem("vocab_size", what)])
        self.config = config
        self.target_embedding = Embedding(config.vocab_size, config.d_model, config.pad_id)
        if config.tied_embeddings == "three-way":
            self.source_embedding = self.target_embedding
        else:
            source_vocab_size = config.source_vocab_size or config.vocab_size
            self.source_embedding = Embedding(source_vocab_size, config.d_model, config.pad_id)
        if config.positions == "sinusoidal":
            self.source_positions: Positions = SinusoidalPositions(config.d_model)
            self.target_positions: Positions = self.source_positions
        else:
            self.source_positions = LearnedPositions(config.d_model, config.max_positions)
            self.target_positions = LearnedPositions(config.d_model, config.max_positions)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config, attend)
        self.decoder = Decoder(config, attend)
        self.projection = nn.Linear(config.d_model, config.vocab_size, bias=config.output_bias)
        self._tie()
        if not self.projection.weight.is_meta:  # meta tensors have no values
            initialise(self)

    @classmethod
    def uninitialised(cls, config: ModelConfig) -> "Transformer":
        """The network without initial values, for weights that are loaded afterwards."""
        with torch.device("meta"):
            model = cls(config)
        # Like `to_empty`, which would import sympy.
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                setattr(module, name, nn.Parameter(torch.empty(parameter.shape)))
        model._tie()
        if config.positions == "sinusoidal":
            model.source_positions = model.target_positions = SinusoidalPositions(config.d_model)
        return model

    def _tie(self) -> None:
        if self.config.tied_embeddings != "none":
            self.projection.weight = self.target_embedding.weight
            self.target_embedding.is_softmax_matrix = True

    def forward(
        self, source_ids: Int[Tensor, "B S"], target_ids: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Logits of padded pairs: `logits[:, i]` predict `target_ids[:, i]`.

        This method shifts the target right: pass the expected output, end symbol included. Rows
        are padded with `config.pad_id`. The logit of the pad id has no meaning: mask it out.
        """
        if len(source_ids) != len(target_ids):
            raise DataError(
                f"{len(source_ids)} source rows and {len(target_ids)} target rows: "
                "a batch needs the same number of both"
            )
        logits = self.decode(target_ids, self.encode(source_ids))
        return logits.view(*target_ids.shape, -1)

    def encode(self, source: Int[Tensor, "B S"] | Tokens) -> Memory:
        """Run the encoder on padded ids, or on tokens with a layout."""
        source = self.source_tokens(source)
        x = self.source_embedding(source.ids) + self.source_positions(source.layout)
        return Memory(self.encoder(self.dropout(x), source.layout), source.layout)

    def decode(self, target: Int[Tensor, "B T"] | Tokens, memory: Memory) -> Float[Tensor, "Nt V"]:
        """Logits that predict each target token from the previous ones and the source."""
        return self.project(self.decoder_states(target, memory))

    def decoder_states(
        self, target: Int[Tensor, "B T"] | Tokens, memory: Memory
    ) -> Float[Tensor, "Nt D"]:
        """The decoder's output before the projection to the vocabulary."""
        target = self._tokens(target, "target", self.config.vocab_size)
        y = self.target_embedding(target.shifted_right(self.start_id).ids)
        y = self.dropout(y + self.target_positions(target.layout))
        states: Tensor = self.decoder(y, target.layout, memory)
        return states

    def project(self, states: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The pre-softmax linear transformation, section 3.4."""
        logits: Tensor = self.projection(states)
        return logits

    @property
    def start_id(self) -> int:
        """The decoder's first input id; the embedding of the pad id is a zero vector."""
        return self.config.bos_id if self.config.decoder_start == "token" else self.config.pad_id

    def n_parameters(self) -> int:
        """The number of trained parameters; a shared matrix counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def source_tokens(self, source: Int[Tensor, "B S"] | Tokens) -> Tokens:
        """The source with its layout. Padded ids are checked."""
        return self._tokens(source, "source", len(self.source_embedding.weight))

    def _tokens(self, ids: Tensor | Tokens, side: str, vocab_size: int) -> Tokens:
        if isinstance(ids, Tokens):
            return ids
        tokens = Tokens.padded(ids, self.config.pad_id)
        if not torch.compiler.is_compiling():
            _check_ids(ids, side, vocab_size, self.config.pad_id)
        return tokens


def _check_ids(ids: Int[Tensor, "B L"], side: str, vocab_size: int, pad_id: int) -> None:
    """Reject ids that would cause a wrong result or an obscure error."""
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        raise VocabularyError(
            f"{side} id {low if low < 0 else high} is outside the vocabulary of {vocab_size} "
            "entries: encode the text with the model's tokenizer"
        )
    real = ids != pad_id
    empty = ~real.any(dim=1)
    if empty.any():
        raise DataError(
            f"{side} sentence {int(empty.nonzero()[0])} of the batch is empty: "
            "remove it, or pass at least the end symbol"
        )
    if (real[:, 1:] & ~real[:, :-1]).any():
        row = int((real[:, 1:] & ~real[:, :-1]).any(dim=1).nonzero()[0])
        raise DataError(
            f"{side} sentence {row} of the batch has padding (id {pad_id}) before a token: "
            "padding must be at the end"
        )


def initialise(model: Transformer) -> None:
    """Set the initial value of every weight. The paper does not specify them.

    Embedding matrices are normal with standard deviation d_model^-0.5. Multiplied by √d_model,
    embeddings are then of order one, like the sinusoids, and so are the first logits. Other
    matrices are Xavier uniform times `initial_gain`; W_Q, W_K and W_V are initialized separately
    although they share a parameter. Layer normalizations start as the identity.
    """
    xavier = partial(nn.init.xavier_uniform_, gain=model.config.initial_gain)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            with torch.no_grad():
                w_q, w_k, w_v = module.split(module.w_qkv.weight.T)
            for matrix in (w_q, w_k, w_v, module.w_o.weight):
                xavier(matrix)
        elif isinstance(module, FeedForward):
            xavier(module.w_1.weight)
            xavier(module.w_2.weight)
        elif isinstance(module, Embedding | LearnedPositions) or module is model.projection:
            nn.init.normal_(module.weight, std=model.config.d_model**-0.5)
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.weight[model.config.pad_id] = 0
