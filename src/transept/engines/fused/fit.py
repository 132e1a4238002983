"""Which networks the fused engine supports. This is asked before Triton is imported."""

from importlib.util import find_spec

from transept.model.config import ModelConfig

HEADS = (16, 32, 64, 128)
"""The sizes of a head that a GPU's matrix units can multiply."""


def obstacles(config: ModelConfig) -> list[str]:
    """What the fused engine does not support in a network; empty for the paper's network."""
    if find_spec("triton") is None:
        return ["Triton is not installed"]
    found = config.unlike(decoder_window=None)
    if config.d_k != config.d_v or config.d_k not in HEADS:
        found.append(f"model.d_k = {config.d_k}, model.d_v = {config.d_v}")
    elif config.n_heads * config.d_k != config.d_model:
        found.append(f"model.n_heads = {config.n_heads} heads of {config.d_k}")
    return found
