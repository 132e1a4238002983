"""Which networks have a fast form. No Triton here: it is asked before Triton is needed."""

from transept.data.config import BatchConfig
from transept.engines.kernels import LONGEST
from transept.model.config import ModelConfig

SIZES = (16, 32, 64, 128)
"""Of heads and tiles: what fits the matrix units, and the chip's memory."""


def obstacles(config: ModelConfig, batch: BatchConfig) -> list[str]:
    """Why a network cannot be trained in this form; empty where it can."""
    found = config.unlike(
        norm="post",
        activation="relu",
        positions="sinusoidal",
        activation_dropout=0.0,
        attention_bias=False,
        output_bias=False,
    )
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
