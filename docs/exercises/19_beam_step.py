"""Exercise 19: one step of beam search (section 6.1).

Beam search keeps the W most probable unfinished outputs, its live hypotheses. In each step, every
one of them could be extended by every entry of the vocabulary. The log-probability of an extended
hypothesis is that of the hypothesis plus that of the new token.

Take the 2·W best of all W · V candidates. Those among them that end with the end symbol are
finished. The W best of the others are the new live hypotheses. (2·W candidates contain at least W
that do not end, because each live hypothesis can end in only one way.)

Hint: `topk` over the flattened matrix of candidates. The row and the column of a candidate follow
from its index and V.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Candidate(NamedTuple):
    """A live hypothesis, extended by a token."""

    log_p: float
    parent: int
    """The row of the hypothesis that it extends."""
    token: int


def beam_step(
    live: Tensor, next_log_p: Tensor, eos_id: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Extend W hypotheses; return the W new live ones and those that are finished, best first.

    Args:
        live: Log-probabilities of the live hypotheses, of shape [W].
        next_log_p: Log-probabilities of each next token, of shape [W, V].
        eos_id: The id of the end symbol.
    """
    raise NotImplementedError
