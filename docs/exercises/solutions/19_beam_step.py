"""Solution of exercise 19. In the package: `transept.decoding.beam.Beams.extend`."""

from typing import NamedTuple

from torch import Tensor


class Candidate(NamedTuple):
    """A live hypothesis, extended by a token."""

    log_p: float
    parent: int
    token: int


def beam_step(
    live: Tensor, next_log_p: Tensor, eos_id: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Extend W hypotheses; return the W new live ones and those that are finished, best first."""
    w, v = next_log_p.shape
    total, index = (live[:, None] + next_log_p).flatten().topk(2 * w)
    best = [
        Candidate(log_p, i // v, i % v)
        for log_p, i in zip(total.tolist(), index.tolist(), strict=True)
    ]
    finished = [one for one in best if one.token == eos_id]
    return [one for one in best if one.token != eos_id][:w], finished
