"""Which networks have a fast form. No Triton here: it is asked before Triton is needed."""

from transept.data.config import BatchConfig
from transept.engines.kernels import LONGEST
from transept.model.config import ModelConfig

SIZES = (16, 32, 64, 128)
"""Of heads and tiles: what fits the matrix units, and the chip's memory."""
POSITIONS, ACTIVATIONS = ("sinusoidal", "learned"), ("relu", "swish")


def obstacles(config: ModelConfig, batch: BatchConfig) -> list[str]:
    """Why a network cannot be trained in this form; empty where it can."""
    found = config.unlike(activation_dropout=0.0)
    for key, known in {"positions": POSITIONS, "activation": ACTIVATIONS}.items():
        if getattr(config, key) not in known:  # a variant whose gradient is not written yet
            found.append(f"model.{key} = {getattr(config, key)!r}")
    for name in ("d_k", "d_v"):
        size = getattr(config, name)
        if size not in SIZES:
            found.append(f"model.{name} = {size}")
    if batch.tile not in SIZES:
        found.append(f"batch.tile = {batch.tile}")
    if batch.max_length >= LONGEST:
        found.append(f"batch.max_length = {batch.max_length}")
    if batch.layout != "packed":
        found.append(f"batch.layout = {batch.layout!r}")
    return found
