"""Check of exercise 8."""

import torch
from comparing import WrongAnswerError, must

from transept import Transformer
from transept.model.config import PAPER_PARAMETERS, PRESETS

FIELDS = ("vocab_size", "n_layers", "d_model", "d_ff", "n_heads", "d_k", "d_v")


def check(student):
    """Count each row of Table 3, the base model first."""
    for row in PAPER_PARAMETERS:
        config = PRESETS[row]
        if config.positions == "learned":
            continue  # row (E) has other parameters
        with torch.device("meta"):  # shapes without memory
            expected = Transformer(config).n_parameters()
        found = student.n_parameters(**{name: getattr(config, name) for name in FIELDS})
        must(isinstance(found, int), f"the result is {found!r}, not an int")
        if found != expected:
            surplus = found - expected
            side = "more" if surplus > 0 else "fewer"
            raise WrongAnswerError(
                f"row {row!r} has {expected:,} parameters, and you count {found:,}: "
                f"{abs(surplus):,} {side}{explained(abs(surplus), config)}"
            )


def explained(surplus, config):
    """The part of the network of that size, if there is one."""
    layers, d, ff = config.n_layers, config.d_model, config.d_ff
    attention = 2 * d * config.n_heads * (config.d_k + config.d_v)
    parts = {
        "the embedding matrix": config.vocab_size * d,
        "one attention in each layer of a stack": layers * attention,
        "W_O of all attentions": 3 * layers * config.n_heads * config.d_v * d,
        "the biases of the feed-forward networks": 2 * layers * (ff + d),
        "a layer normalization in each layer of a stack": layers * 2 * d,
        "a feed-forward network in each layer of a stack": layers * (2 * d * ff + ff + d),
        "biases of all attention projections": 3
        * layers
        * (2 * config.n_heads * config.d_k + config.n_heads * config.d_v + d),
    }
    for times in range(1, 6):
        for name, size in parts.items():
            if surplus == times * size:
                return f", which is {name}" + (f", {times} times" if times > 1 else "")
    return ""
