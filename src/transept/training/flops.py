"""How much arithmetic a step is, so that its speed can be held against the machine's."""

import numpy as np
from numpy.typing import NDArray

from transept.model.config import ModelConfig


def training_flops(
    config: ModelConfig, sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> float:
    """FLOPs of one step: 6 for each multiply-add of the forward pass, backward included.

    Only real tokens count: every matrix once a token, and attention inside sentences.

    Args:
        config: The network.
        sources: The length of each source sentence.
        targets: Those of their translations.
    """
    h_dk, h_dv = config.n_heads * config.d_k, config.n_heads * config.d_v
    attention = config.d_model * (2 * h_dk + h_dv) + h_dv * config.d_model
    keys_and_values = config.d_model * (h_dk + h_dv)
    feed_forward = 2 * config.d_model * config.d_ff
    source_tokens, target_tokens = int(sources.sum()), int(targets.sum())
    encoder = source_tokens * (attention + feed_forward)
    decoder = target_tokens * (2 * attention - keys_and_values + feed_forward)
    decoder += source_tokens * keys_and_values
    # (query, key) pairs: source to source, target to what is before it, target to source.
    seen = sources * sources + targets * (targets + 1) // 2 + targets * sources
    inside = int(seen.sum()) * (h_dk + h_dv)
    projection = target_tokens * config.d_model * config.vocab_size
    return 6.0 * (config.n_layers * (encoder + decoder + inside) + projection)
