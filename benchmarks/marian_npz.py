"""Writes a network for the Marian toolkit (Junczys-Dowmunt et al., 2018): weights and vocabulary.

The network is the same except for the frequencies of the positional encoding: Marian has
d_model/2 − 1 in the exponent, the paper d_model/2. Marian cannot be given another encoding: with
learned positions its decoder reads the first row of the table at every step. With the bundled
`en-de`, the different frequencies change about one output in a hundred.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transept import Transformer
from transept.errors import ConfigError, Problem
from transept.formats.huggingface_writer import obstacles, weights
from transept.formats.marian_reader import POST_NORM, SETTINGS
from transept.model.attention import require_equation_1
from transept.model.config import ModelConfig
from transept.shapes import Tensor
from transept.text.tokenizer import EOS_ID, UNK_ID

MODEL, VOCABULARY = "model.npz", "vocab.yml"
_LAYER = re.compile(r"model\.(encoder|decoder)\.layers\.(\d+)\.(.+)\.(weight|bias)")
_PARTS = {
    "self_attn": "self",
    "encoder_attn": "context",
    "self_attn_layer_norm": "self_Wo_ln",
    "encoder_attn_layer_norm": "context_Wo_ln",
    "final_layer_norm": "ffn_ffn_ln",
}
"""Marian's names for parts of a layer, by those of MarianMT."""


def write_model(model: Transformer, directory: Path) -> None:
    """Write the weights and the vocabulary into an existing directory."""
    config = model.config
    problems = obstacles(config)
    if config.decoder_start != "zero":
        problems.append(Problem("model.decoder_start", "must be 'zero', as in Marian"))
    if config.source_vocab_size not in (None, config.vocab_size):
        problems.append(Problem("model.source_vocab_size", "must be vocab_size"))
    if problems:
        raise ConfigError(problems)
    require_equation_1(model, "Marian")
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings(config).items())
    # Marian reads arrays in row-major order only.
    content = {name: tensor.contiguous().numpy() for name, tensor in arrays(model).items()}
    content[SETTINGS] = np.frombuffer(text.encode() + b"\0", dtype=np.int8)
    np.savez(directory / MODEL, allow_pickle=False, **content)
    entries = (f"{json.dumps(name)}: {id}\n" for id, name in enumerate(names(config.vocab_size)))
    (directory / VOCABULARY).write_text("".join(entries), encoding="utf-8")


def quantized(file: Path, gemm_type: str) -> Path:
    """Convert the weights with Marian's own command, such as to `intgemm8`."""
    output = file.with_suffix(f".{gemm_type}.bin")
    command = [sys.executable, "-m", "pymarian", "convert", "--gemm-type", gemm_type]
    subprocess.run([*command, "-f", file, "-t", output], check=True, capture_output=True)
    return output


def names(vocab_size: int) -> list[str]:
    """Token names: their ids. Marian looks up the end symbol and the unknown token by name."""
    found = [str(token) for token in range(vocab_size)]
    found[EOS_ID], found[UNK_ID] = "</s>", "<unk>"
    return found


def settings(config: ModelConfig) -> dict[str, Any]:
    """Marian's options for this network."""
    return {
        "type": "transformer",
        "dim-vocabs": [config.vocab_size, config.vocab_size],
        "dim-emb": config.d_model,
        "enc-depth": config.n_layers,
        "dec-depth": config.decoder_depth,
        "transformer-heads": config.n_heads,
        "transformer-dim-ffn": config.d_ff,
        "transformer-ffn-depth": 2,
        "transformer-ffn-activation": config.activation,
        "transformer-postprocess-emb": "d",
        "transformer-decoder-autoreg": "self-attention",
        "input-types": ["sequence", "sequence"],
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "tied-embeddings-all": False,
        **POST_NORM,
    }


def arrays(model: Transformer) -> dict[str, Tensor]:
    """The weights by Marian's names. Matrices are (in, out), vectors are matrices of one row.

    The projection is stored separately from the embeddings: `marian-conv` quantizes matrices by
    their names, and never an embedding matrix.
    """
    theirs = weights(model)
    shared = theirs.get("model.shared.weight")
    embeddings = [
        theirs[name] if shared is None else shared
        for name in (
            "model.encoder.embed_tokens.weight",
            "model.decoder.embed_tokens.weight",
            "lm_head.weight",
        )
    ]
    found = {
        "encoder_Wemb": embeddings[0],
        "decoder_Wemb": embeddings[1],
        "decoder_ff_logit_out_W": embeddings[2].T,
        "decoder_ff_logit_out_b": theirs["final_logits_bias"],
    }
    for name, tensor in theirs.items():
        if match := _LAYER.fullmatch(name):
            side, layer, part, kind = match.groups()
            here = f"{side}_l{int(layer) + 1}_{_part(part, kind)}"
            found[here] = tensor.T if tensor.dim() == 2 else tensor[None]
    return found


def _part(part: str, kind: str) -> str:
    """Marian's name for a part of a layer of MarianMT, such as `self_attn.q_proj`."""
    if part in _PARTS:
        return f"{_PARTS[part]}_{'scale' if kind == 'weight' else 'bias'}"
    letter = "W" if kind == "weight" else "b"
    if part in ("fc1", "fc2"):
        return f"ffn_{letter}{part[-1]}"
    attention, projection = part.split(".")
    return f"{_PARTS[attention]}_{letter}{projection[0]}"
