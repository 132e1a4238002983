"""The run that chapter 0 shows without JavaScript: one sentence through the bundled model.

`docs/live` replaces it with a reader's own run. The pictures of its tensors have the same names
there.
"""

import base64
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transept import load
from transept.api.search_tree import SearchTree, TreeHypothesis, search_tree
from transept.api.transducer import Transducer
from transept.decoding.config import SearchConfig
from transept.model.attention import MultiHeadAttention
from transept.model.transformer import Transformer
from transept.text.tokenizer import EOS_ID, PAD_ID

SENTENCE = "The old man reads a book in the garden."
LAYER, HEAD = 5, 3
"""The encoder layer and the head of Figure 2, from 0."""
N_SHOWN = 64
"""Pictures show this many of the d_model numbers of each vector."""
POSITIVE, NEGATIVE = (0x15, 0x83, 0xC4), (0xD5, 0x5E, 0x00)
"""The colours of positive and negative numbers. The background is transparent, for both themes."""


@dataclass(frozen=True, slots=True)
class Run:
    """A sentence, its translation, and the tensors on the way."""

    source: str
    output: str
    source_ids: list[int]
    target_ids: list[int]
    pieces: list[str]
    target_pieces: list[str]
    tensors: dict[str, Tensor]
    """Matrices, by the names of their pictures."""
    embedding: tuple[Tensor, Tensor, Tensor]
    """Embeddings, positional encodings and their sums, for the source."""
    encoder_weights: Tensor
    """The attention weights of the encoder: layer, head, query, key."""
    probabilities: Tensor
    """p of each subword of the vocabulary after each prefix of the output."""
    vocabulary: list[str]
    tree: SearchTree

    @property
    def hardest(self) -> int:
        """The step at which the network is least certain."""
        return int(self.probabilities.amax(dim=1).argmin())


@torch.inference_mode()
def record(sentence: str = SENTENCE) -> Run:
    """Translate a sentence with the bundled model `en-de` and keep what it computes."""
    model = load("en-de", engine="native", device="cpu")
    tokenizer, network = model.source_tokenizer, model.model
    tree = search_tree(model, sentence, SearchConfig())
    output = _hypothesis(tree, tree.winner).text
    source_ids = [*tokenizer.encode(sentence), EOS_ID]
    target_ids = [*tokenizer.encode(output), EOS_ID]
    _check_path(model, tree, target_ids)
    embedding = _embedded(network, source_ids)
    seen, logits = _watched(network, source_ids, target_ids)
    weights = [seen[f"encoder.{n}.weights"] for n in range(network.config.n_layers)]
    last = len(weights) - 1, network.config.decoder_depth - 1
    tensors = {
        "encoder.input": embedding[2],
        "encoder.attended": seen[f"encoder.{last[0]}.0"],
        "encoder.output": seen[f"encoder.{last[0]}.1"],
        "decoder.input": _embedded(network, [PAD_ID, *target_ids[:-1]])[2],
        "decoder.masked": seen[f"decoder.{last[1]}.0"],
        "decoder.attended": seen[f"decoder.{last[1]}.1"],
        "decoder.output": seen[f"decoder.{last[1]}.2"],
        **_attention(network.encoder.stack[LAYER].self_attention, seen[f"encoder.{LAYER - 1}.1"]),
    }
    logits[:, PAD_ID] = -torch.inf
    vocabulary = tokenizer.pieces_of(range(tokenizer.vocab_size))
    return Run(
        source=sentence,
        output=output,
        source_ids=source_ids,
        target_ids=target_ids,
        pieces=tokenizer.pieces_of(source_ids),
        target_pieces=tokenizer.pieces_of(target_ids),
        tensors=tensors,
        embedding=embedding,
        encoder_weights=torch.stack(weights),
        probabilities=logits.softmax(dim=1),
        vocabulary=vocabulary,
        tree=tree,
    )


def _hypothesis(tree: SearchTree, number: int) -> TreeHypothesis:
    return next(one for step in tree.steps for one in step if one.id == number)


def _check_path(model: Transducer, tree: SearchTree, target_ids: list[int]) -> None:
    """Require that the text of the output has the subwords that the search has found."""
    path: list[str] = []
    number = tree.winner
    while True:
        one = _hypothesis(tree, number)
        path.insert(0, one.token)
        if one.parent is None:
            break
        number = one.parent
    assert path == model.target_tokenizer.pieces_of(target_ids)


def _embedded(network: Transformer, ids: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    embedding = network.source_embedding(torch.tensor(ids))
    encoding = network.source_positions.at(torch.arange(len(ids)))
    return embedding, encoding, embedding + encoding


def _watched(
    network: Transformer, source_ids: list[int], target_ids: list[int]
) -> tuple[dict[str, Tensor], Tensor]:
    """The outputs of all residual connections, attention weights, and the logits."""
    seen: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: Any, _given: Any, output: Tensor) -> None:
            seen[name] = output

        return hook

    handles = []
    for stack in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(network, stack).stack):
            for sublayer, residual in enumerate(layer.residuals):
                name = f"{stack}.{number}.{sublayer}"
                handles.append(residual.register_forward_hook(keep(name)))
    for number, layer in enumerate(network.encoder.stack):
        layer.self_attention.probe = keep_first(seen, f"encoder.{number}.weights")
    try:
        logits = network(torch.tensor([source_ids]), torch.tensor([target_ids]))[0]
    finally:
        for handle in handles:
            handle.remove()
        for layer in network.encoder.stack:
            del layer.self_attention.probe
    return seen, logits


def keep_first(seen: dict[str, Tensor], name: str) -> Callable[[Tensor], None]:
    """A probe that keeps the weights of the only sentence of a batch."""

    def probe(weights: Tensor) -> None:
        seen[name] = weights[0]

    return probe


def _attention(attention: MultiHeadAttention, x: Tensor) -> dict[str, Tensor]:
    """The parts of Figure 2 for the input of an encoder layer."""
    h = attention.n_heads
    q, k, v = (
        part.view(len(x), h, -1).transpose(0, 1) for part in attention.split(attention.w_qkv(x))
    )
    scores = q @ k.transpose(1, 2) / attention.d_k**0.5
    weights = scores.softmax(dim=-1)
    heads = weights @ v
    concatenated = heads.transpose(0, 1).flatten(1)
    return {
        "attention.q": q[HEAD],
        "attention.k": k[HEAD],
        "attention.v": v[HEAD],
        "attention.scores": scores[HEAD],
        "attention.weights": weights[HEAD],
        "attention.head": heads[HEAD],
        **{f"attention.weights.{n}": weights[n] for n in range(h)},
        "attention.concat": concatenated,
        "attention.output": attention.w_o(concatenated),
    }


def picture(matrix: Tensor, scale: float | None = None) -> str:
    """A matrix as the address of an image, with one pixel per number.

    Args:
        matrix: The numbers. Only the first columns are shown.
        scale: The number with the full colour. Default: three times the root mean square.
    """
    rows = matrix[:, :N_SHOWN].double()
    scale = scale or 3 * float(rows.square().mean().sqrt()) or 1.0
    alpha = (rows.abs() / scale).clamp(max=1).mul(255).round().int().tolist()
    pixels = b"".join(
        b"\0"
        + b"".join(
            bytes((*(POSITIVE if number >= 0 else NEGATIVE), a))
            for number, a in zip(numbers, alphas, strict=True)
        )
        for numbers, alphas in zip(rows.tolist(), alpha, strict=True)
    )
    size = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 6, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + checksum
