"""How much arithmetic a step is, so that its speed can be held against the machine's."""

from transept.model.config import ModelConfig


def training_flops(
    config: ModelConfig,
    *,
    source_tokens: int,
    target_tokens: int,
    source_pairs: int,
    target_pairs: int,
    cross_pairs: int,
) -> float:
    """FLOPs of one step: 6 for each multiply-add of the forward pass, backward included.

    Only real tokens count: every matrix once a token, and attention inside sentences. The pairs
    are (query, key) pairs: Σ S² of the source, Σ T(T+1)/2 of the target, Σ S·T between them.
    """
    h_dk, h_dv = config.n_heads * config.d_k, config.n_heads * config.d_v
    attention = config.d_model * (2 * h_dk + h_dv) + h_dv * config.d_model
    keys_and_values = config.d_model * (h_dk + h_dv)
    feed_forward = 2 * config.d_model * config.d_ff
    encoder = source_tokens * (attention + feed_forward)
    decoder = target_tokens * (2 * attention - keys_and_values + feed_forward)
    decoder += source_tokens * keys_and_values
    inside = (source_pairs + target_pairs + cross_pairs) * (h_dk + h_dv)
    projection = target_tokens * config.d_model * config.vocab_size
    return 6.0 * (config.n_layers * (encoder + decoder + inside) + projection)
