"""A moving average of the weights, which then is the model; the paper has none."""

import torch
from torch import nn


class MovingAverage:
    """An exponential moving average of the weights."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def begin(self, model: nn.Module) -> None:
        """Begin anew, at the network's weights of now."""
        for name, parameter in model.named_parameters():
            self.weights[name].copy_(parameter)

    @torch.no_grad()
    def follow(self, model: nn.Module) -> None:
        """Take a step towards the network's weights."""
        ours = list(self.weights.values())
        torch._foreach_lerp_(ours, [p.detach() for p in model.parameters()], 1 - self.decay)

    @torch.no_grad()
    def exchange(self, model: nn.Module) -> None:
        """Swap the average and the network's weights."""
        for name, parameter in model.named_parameters():
            weight = parameter.detach().clone()
            parameter.copy_(self.weights[name])
            self.weights[name].copy_(weight)
