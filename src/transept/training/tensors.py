"""`training.safetensors`: what training goes on from besides the weights."""

from collections.abc import Mapping

import torch

from transept.shapes import Tensor
from transept.training.sharding import gathered_moments, is_own, own_part
from transept.training.update import Update

MEAN, SQUARE, COUNT = "adam.mean.", "adam.square.", "adam.count"
RAW = "raw."


def training_tensors(update: Update) -> dict[str, Tensor]:
    """Adam's moments and its count of steps; with a moving average, the weights behind it too.

    All ranks must ask; rank 0 is given all of it.
    """
    tensors: dict[str, Tensor] = {}
    named = dict(update.model.named_parameters())
    moments = gathered_moments(update.adam, list(named.values()), update.runtime.world)
    for (name, parameter), state in zip(named.items(), moments, strict=True):
        tensors[MEAN + name] = state["exp_avg"]
        tensors[SQUARE + name] = state["exp_avg_sq"]
        tensors[COUNT] = state["step"]
        if update.ema is not None:
            tensors[RAW + name] = parameter.detach()
    return tensors


def restore_training_tensors(update: Update, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `training_tensors` gave. The network already holds the bundle's weights."""
    for name, parameter in update.model.named_parameters():
        if is_own(update.adam, parameter):
            own_part(update.adam).state[parameter] = {
                "step": tensors[COUNT].to(parameter.device, copy=True),
                "exp_avg": tensors[MEAN + name].to(parameter.device),
                "exp_avg_sq": tensors[SQUARE + name].to(parameter.device),
            }
        if update.ema is not None:
            with torch.no_grad():
                update.ema.weights[name].copy_(parameter)
                parameter.copy_(tensors[RAW + name])
