"""The record of a beam search for one sentence: every candidate of every step."""

import math
from typing import Literal, NamedTuple

from transept.decoding.beam import Beams, Candidates
from transept.decoding.step import Hypothesis, length_penalty

Fate = Literal["kept", "pruned", "finished"]
"""Whether a candidate is extended in the next step, is dropped, or is an output."""


class Candidate(NamedTuple):
    """A hypothesis that the search considered."""

    number: int
    parent: int | None
    """The number of the hypothesis that it extends by a token. None: it has one token."""
    ids: tuple[int, ...]
    """Its tokens, with the end symbol if it has one."""
    log_p: float
    score: float
    """log P / lp, by which outputs are ranked."""
    fate: Fate


class SearchRecord:
    """An observer that records the 2·W best candidates of each step.

    Only the search decides what is kept. A finished candidate may later be displaced by better
    ones.
    """

    def __init__(self) -> None:
        self.steps: list[list[Candidate]] = []
        self.bound = -math.inf
        """The highest score that a live hypothesis could still reach after the last step."""
        self._live: list[Candidate] = []
        self._n = 0

    def __call__(self, candidates: Candidates, beams: Beams) -> None:
        """Record a step."""
        if len(beams.sentence) != 1:
            raise ValueError("a record is of one sentence")
        n_tokens = len(self.steps) + 1
        penalty = length_penalty(n_tokens, beams.config.length_penalty)
        rows = {
            pair: row for row, pair in reversed([*enumerate(zip(*beams.steps[-1], strict=True))])
        }
        live, step = dict[int, Candidate](), list[Candidate]()
        for log_p, row, token in zip(*(part[0].tolist() for part in candidates), strict=True):
            if log_p == -math.inf:
                continue
            parent = self._live[row] if self._live else None
            ids = (*(parent.ids if parent else ()), token)
            fate: Fate = "pruned"
            kept = rows.get((token, row))
            if token == beams.eos_id:
                fate = "finished" if ids[:-1] in beams.finished[0] else "pruned"
            elif kept is not None:
                fate = "kept"
            number = parent.number if parent else None
            one = Candidate(self._n, number, ids, log_p, log_p / penalty, fate)
            self._n += 1
            step.append(one)
            if fate == "kept" and kept is not None:
                live[kept] = one
        self.steps.append(step)
        self._live = [live.get(row, step[0]) for row in range(beams.config.beam_size)]
        self.bound = float(beams.log_p[0, 0] / beams.largest_penalty[0])

    def find(self, output: Hypothesis, eos_id: int) -> Candidate:
        """The candidate that is an output of the search."""
        ids = (*output.ids, eos_id) if output.finished else output.ids
        fate = "finished" if output.finished else "kept"
        (found,) = [
            one for step in self.steps for one in step if one.ids == ids and one.fate == fate
        ]
        return found
