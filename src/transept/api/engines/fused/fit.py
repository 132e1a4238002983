"""Which networks can be searched on a GPU in this form. No Triton here: it is asked before."""

from importlib.util import find_spec

from transept.model.config import ModelConfig

HEADS = (16, 32, 64, 128)
"""What fits the matrix units."""


def obstacles(config: ModelConfig) -> list[str]:
    """What stands in the way; nothing, for the paper's network."""
    if find_spec("triton") is None:
        return ["Triton is not installed"]
    found = config.unlike(
        norm="post",
        activation="relu",
        positions="sinusoidal",
        attention_bias=False,
        decoder_window=None,
    )
    if config.d_k != config.d_v or config.d_k not in HEADS:
        found.append(f"model.d_k = {config.d_k}, model.d_v = {config.d_v}")
    elif config.n_heads * config.d_k != config.d_model:
        found.append(f"model.n_heads = {config.n_heads} heads of {config.d_k}")
    return found
