"""The decoder one token at a time, with what it computed before kept: fast and the same.

`Transformer.decode` computes every position anew and is the truth. Here each layer keeps the keys
and values of the positions so far, and those of the source, which never change. Parity tests hold
the two together.
"""

import torch
from torch.nn import functional as F

from transept.model.attention import MultiHeadAttention
from transept.model.transformer import DecoderLayer, Memory, Transformer
from transept.shapes import Bool, Float, Int, Tensor

BLOCK = 32
"""The cache grows by so many positions at a time."""


class IncrementalDecoder:
    """A step for searches: appends a token to each row and gives log p of the next.

    Rows of one sentence stand together, equally many for each sentence, so that they share its
    source keys and values: those are computed once and never copied for the rows of a beam.
    """

    def __init__(self, model: Transformer, memory: Memory) -> None:
        layout = memory.layout
        self.model = model
        self.position = 0
        self.sentence = torch.arange(len(layout.segments), device=memory.states.device)
        self.visible: Bool[Tensor, "B 1 1 S"] = (layout.segments > 0)[:, None, None, :]
        r = model.config.decoder_window
        stack = (layer for layer in model.decoder.layers if isinstance(layer, DecoderLayer))
        self.layers = [_Layer(layer, memory, r) for layer in stack]

    @torch.no_grad()
    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Append a token to each row (None: the start); log p of each token to come."""
        model = self.model
        if tokens is None:
            start = model.start_id
            tokens = torch.full((len(self.sentence),), start, device=self.sentence.device)
        y = model.target_embedding(tokens) + self._position_vector()
        n_rows = len(tokens) // len(self.visible)
        for layer in self.layers:
            y = layer(y, self.position, n_rows, self.visible)
        self.position += 1
        logits = model.project(model.decoder.norm(y)).float()
        logits[:, model.config.pad_id] = -torch.inf
        return logits.log_softmax(dim=-1)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows; sentences of which none is left are forgotten."""
        n_rows = len(self.sentence)
        kept = self.sentence[rows].unique_consecutive()
        if len(kept) < len(self.visible):
            self.visible = self.visible[kept]
            for layer in self.layers:
                layer.keep_sentences(kept)
        self.sentence = torch.arange(len(kept), device=rows.device).repeat_interleave(
            len(rows) // len(kept)
        )
        unchanged = len(rows) == n_rows and bool((rows.diff() == 1).all())
        if not unchanged:
            for layer in self.layers:
                layer.select(rows)

    def _position_vector(self) -> Float[Tensor, "1 D"]:
        self.model.target_positions.reach(self.position + 1)
        place = torch.tensor([self.position], device=self.sentence.device)
        return self.model.target_positions.at(place)


class _Layer:
    """One decoder layer with its cache."""

    def __init__(self, layer: DecoderLayer, memory: Memory, r: int | None) -> None:
        self.layer = layer
        self.window = r
        self.source_keys, self.source_values = _source_heads(layer.source_attention, memory)
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def __call__(
        self, y: Float[Tensor, "N D"], position: int, n_rows: int, visible: Tensor
    ) -> Float[Tensor, "N D"]:
        residuals, layer = self.layer.residuals, self.layer
        y = residuals[0](y, lambda y: self._self_attention(y, position))
        y = residuals[1](y, lambda y: self._source_attention(y, n_rows, visible))
        out: Tensor = residuals[2](y, layer.feed_forward)
        return out

    def _self_attention(self, y: Float[Tensor, "N D"], position: int) -> Float[Tensor, "N D"]:
        attention = self.layer.self_attention
        q, k, v = (_heads(part, attention.n_heads) for part in attention.split(attention.w_qkv(y)))
        keys, values = self._append(k, v, position)
        out = F.scaled_dot_product_attention(q[:, :, None], keys, values)
        projected: Tensor = attention.w_o(out.flatten(1))
        return projected

    def _append(self, k: Tensor, v: Tensor, position: int) -> tuple[Tensor, Tensor]:
        """Put a position's keys and values behind the others; give those that may be seen."""
        if self.keys is None or self.values is None:
            self.keys = k.new_empty(*k.shape[:2], BLOCK, k.shape[2])
            self.values = v.new_empty(*v.shape[:2], BLOCK, v.shape[2])
        elif position == self.keys.shape[2]:
            self.keys = F.pad(self.keys, (0, 0, 0, BLOCK))
            self.values = F.pad(self.values, (0, 0, 0, BLOCK))
        self.keys[:, :, position] = k
        self.values[:, :, position] = v
        first = 0 if self.window is None else max(0, position + 1 - self.window)
        seen = slice(first, position + 1)
        return self.keys[:, :, seen], self.values[:, :, seen]

    def _source_attention(
        self, y: Float[Tensor, "N D"], n_rows: int, visible: Tensor
    ) -> Float[Tensor, "N D"]:
        attention = self.layer.source_attention
        h_dk = attention.n_heads * attention.d_k
        bias = attention.w_qkv.bias
        q = F.linear(y, attention.w_qkv.weight[:h_dk], None if bias is None else bias[:h_dk])
        # The rows of a sentence are queries to one and the same source.
        q = q.view(-1, n_rows, attention.n_heads, attention.d_k).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            q, self.source_keys, self.source_values, attn_mask=visible
        )
        projected: Tensor = attention.w_o(out.transpose(1, 2).reshape(len(y), -1))
        return projected

    def select(self, rows: Int[Tensor, " M"]) -> None:
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]

    def keep_sentences(self, kept: Int[Tensor, " B"]) -> None:
        self.source_keys = self.source_keys[kept]
        self.source_values = self.source_values[kept]


def _heads(x: Float[Tensor, "N HDh"], n_heads: int) -> Float[Tensor, "N H Dh"]:
    return x.view(len(x), n_heads, -1)


def _source_heads(attention: MultiHeadAttention, memory: Memory) -> tuple[Tensor, Tensor]:
    """Keys and values of the source, in rows: what does not change from step to step."""
    h_dk = attention.n_heads * attention.d_k
    weight, bias = attention.w_qkv.weight[h_dk:], attention.w_qkv.bias
    kv = F.linear(memory.states, weight, None if bias is None else bias[h_dk:])
    k, v = memory.layout.apart(kv).tensor_split([h_dk], dim=-1)
    return tuple(
        part.view(*part.shape[:2], attention.n_heads, -1).transpose(1, 2).contiguous()
        for part in (k, v)
    )  # type: ignore[return-value]
