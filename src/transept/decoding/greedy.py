"""The most probable token at each step, or one drawn at random."""

from collections.abc import Callable, Sequence

import torch

from transept.decoding.hypothesis import Hypothesis
from transept.decoding.length import length_penalty
from transept.decoding.step import Step
from transept.shapes import Float, Int, Tensor

Choose = Callable[[Float[Tensor, "N V"], Int[Tensor, " N"]], Int[Tensor, " N"]]
"""The next token of each row, from log p and the numbers of the rows' sentences."""


def greedy_search(
    step: Step, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> list[Hypothesis]:
    """Beam size 1: stops at the first end symbol; the penalty only scales the score."""
    return one_by_one(step, max_lengths, alpha, eos_id, lambda log_p, _: log_p.argmax(dim=1))


def one_by_one(
    step: Step, max_lengths: Sequence[int], alpha: float, eos_id: int, choose: Choose
) -> list[Hypothesis]:
    """Follow a single row of each sentence to its end."""
    results: dict[int, Hypothesis] = {}
    sentence, longest = torch.arange(len(max_lengths)), torch.tensor(max_lengths)
    tokens = torch.empty(len(max_lengths), 0, dtype=torch.long)
    log_p = step(None)
    total = torch.zeros(len(max_lengths), dtype=log_p.dtype)
    while True:
        chosen = choose(log_p, sentence)
        total = total + log_p.gather(1, chosen[:, None]).squeeze(1)
        tokens = torch.cat([tokens, chosen[:, None]], dim=1)
        ended = chosen == eos_id
        done = ended | (tokens.shape[1] >= longest)
        penalty = length_penalty(tokens.shape[1], alpha)
        for row in done.nonzero().squeeze(1).tolist():
            finished = bool(ended[row])
            ids, log_probability = tokens[row].tolist(), float(total[row])
            results[int(sentence[row])] = Hypothesis(
                tuple(ids[:-1] if finished else ids),
                log_probability,
                log_probability / penalty,
                finished,
            )
        if done.all():
            return [results[number] for number in range(len(max_lengths))]
        if done.any():
            kept = (~done).nonzero().squeeze(1)
            step.select(kept)
            sentence, longest, total = sentence[kept], longest[kept], total[kept]
            tokens, chosen = tokens[kept], chosen[kept]
        log_p = step(chosen)
