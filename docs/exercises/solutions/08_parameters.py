"""Solution of exercise 8. In the package: `Transformer.n_parameters`."""


def n_parameters(
    vocab_size: int, n_layers: int, d_model: int, d_ff: int, n_heads: int, d_k: int, d_v: int
) -> int:
    """Return the number of parameters of a Transformer with `n_layers` layers in each stack."""
    attention = 2 * d_model * n_heads * d_k + 2 * d_model * n_heads * d_v
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + n_layers * (encoder_layer + decoder_layer)
