"""Beam search with the paper's length penalty and exact early stopping (section 6.1)."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import torch

from transept.decoding.config import SearchConfig
from transept.decoding.greedy import greedy_states
from transept.decoding.step import (
    Hypothesis,
    Partial,
    State,
    Step,
    length_penalty,
    not_done,
    ranking,
    results,
)
from transept.shapes import Float, Int, Tensor


def search(
    step: Step, max_lengths: Sequence[int], config: SearchConfig, eos_id: int
) -> list[list[Hypothesis]]:
    """The best outputs for each sentence, best first.

    Args:
        step: The model, with one row per sentence.
        max_lengths: Maximum output length of each sentence, end symbol included.
        config: Beam size, length penalty, number of outputs.
        eos_id: The end symbol.
    """
    return results(search_states(step, max_lengths, config, eos_id), len(max_lengths))


def search_states(
    step: Step,
    max_lengths: Sequence[int],
    config: SearchConfig,
    eos_id: int,
    observer: "SearchObserver | None" = None,
) -> Iterator[State]:
    """The state of `search` after each step. Greedy search has no candidates to observe."""
    if config.beam_size == 1:
        return greedy_states(step, max_lengths, config.length_penalty, eos_id)
    return beam_states(step, max_lengths, config, eos_id, observer)


def beam_states(
    step: Step,
    max_lengths: Sequence[int],
    config: SearchConfig,
    eos_id: int,
    observer: "SearchObserver | None" = None,
) -> Iterator["Beams"]:
    """The state of beam search after each step.

    Each step keeps 2·W candidates per sentence: at most W that are finished, and W live ones. A
    sentence is done when its `n_best` finished outputs score at least as well as any live one still
    could. log P only decreases, and a negative number is largest under the largest penalty, so the
    score of a live hypothesis is at most log P / lp(maximum length). The n best outputs are the
    first n of any larger `n_best`, and do not depend on other sentences of the batch.
    """
    w, best = config.beam_size, ranking(step)
    log_p, token = best(None, 2 * w)
    beams = Beams.start(log_p, max_lengths, config, eos_id)
    beams.observer = observer
    # At first, all W rows of a sentence are equal, so the step has one row per sentence.
    parents = beams.extend(log_p.repeat_interleave(w, 0), token.repeat_interleave(w, 0)) // w
    yield beams
    while not all(beams.done):
        if any(beams.done):
            parents = beams.drop(parents)
        step.select(parents)
        parents = beams.extend(*best(beams.last, 2 * w))
        yield beams


class BackPointers(NamedTuple):
    """One step: the new token of each row, and the index of the previous row that it extends."""

    token: list[int]
    parent: list[int]


class Candidates(NamedTuple):
    """The best extensions of the live hypotheses in a step, best first."""

    log_p: Float[Tensor, "B K"]
    parent: Int[Tensor, "B K"]
    """The row of the live hypothesis that each extends."""
    token: Int[Tensor, "B K"]


@runtime_checkable
class SearchObserver(Protocol):
    """Watches a beam search."""

    def __call__(self, candidates: Candidates, beams: "Beams") -> None:
        """See the candidates of a step, and the beams after it."""


@dataclass(slots=True)
class Beams:
    """W live and W finished hypotheses for each sentence that was not done before the last step.

    Each live hypothesis is a row. The rows of a sentence are adjacent, best first.
    """

    config: SearchConfig
    eos_id: int
    sentence: list[int]
    max_length: list[int]
    log_p: Float[Tensor, "B W"]
    last: Int[Tensor, " N"]
    """The last token of each live hypothesis."""
    finished: list[list[tuple[int, ...]]]
    finished_log_p: Float[Tensor, "B W"]
    finished_score: Float[Tensor, "B W"]
    first_row: Int[Tensor, "B 1"]
    """The index of each sentence's first row."""
    largest_penalty: Float[Tensor, " B"]
    """lp of the maximum length, which bounds the score that a live hypothesis can reach."""
    steps: list[BackPointers] = field(default_factory=list)
    """The history of the live hypotheses. Cheaper to store than the tokens of each."""
    done: list[bool] = field(default_factory=list)
    observer: SearchObserver | None = None

    @classmethod
    def start(
        cls,
        log_p: Float[Tensor, "B K"],
        max_lengths: Sequence[int],
        config: SearchConfig,
        eos_id: int,
    ) -> "Beams":
        """The beams before the first token."""
        n, w = len(max_lengths), config.beam_size
        nothing = log_p.new_full((n, w), -torch.inf)
        live = nothing.clone()
        live[:, 0] = 0.0  # only one, because all are equal at first
        return cls(
            config=config,
            eos_id=eos_id,
            sentence=list(range(n)),
            max_length=list(max_lengths),
            log_p=live,
            last=torch.empty(n * w, dtype=torch.long, device=log_p.device),
            finished=[[()] * w for _ in range(n)],
            finished_log_p=nothing,
            finished_score=nothing,
            first_row=torch.arange(0, n * w, w, device=log_p.device)[:, None],
            largest_penalty=log_p.new_tensor(
                [length_penalty(length, config.length_penalty) for length in max_lengths]
            ),
        )

    def extend(self, log_p: Float[Tensor, "N K"], token: Int[Tensor, "N K"]) -> Int[Tensor, " N"]:
        """Extend every live hypothesis by a token; return the rows that the new ones extend.

        Args:
            log_p: Log p of the likeliest tokens of each row: 2·W or the whole vocabulary.
            token: The ids of these tokens.
        """
        n, w = self.log_p.shape
        k = log_p.shape[1]
        candidates = (self.log_p.unsqueeze(2) + log_p.view(n, w, k)).view(n, w * k)
        total, index = candidates.topk(min(2 * w, w * k), dim=1)
        parent = index.div(k, rounding_mode="floor") + self.first_row
        token = token.view(n, w * k).gather(1, index)
        found = Candidates(total, parent, token)
        if self.eos_id in token.flatten().tolist():
            ends = token == self.eos_id
            self._finish(total.masked_fill(~ends, -torch.inf), parent)
            total, order = total.masked_fill(ends, -torch.inf).topk(w, dim=1)
            parent, token = parent.gather(1, order), token.gather(1, order)
        self.log_p, parents = total[:, :w], parent[:, :w].flatten()
        self.last = token[:, :w].flatten()
        self.steps.append(BackPointers(self.last.tolist(), parents.tolist()))
        self.done = self._done()
        if self.observer is not None:
            self.observer(found, self)
        return parents

    def _finish(self, log_p: Float[Tensor, "B K"], parent: Int[Tensor, "B K"]) -> None:
        """Keep the W best of the finished hypotheses and the candidates that end in this step."""
        w = self.config.beam_size
        penalty = length_penalty(len(self.steps) + 1, self.config.length_penalty)
        score = torch.cat([self.finished_score, log_p / penalty], dim=1)
        self.finished_score, order = score.topk(w, dim=1)
        self.finished_log_p = torch.cat([self.finished_log_p, log_p], dim=1).gather(1, order)
        ended = (log_p > -torch.inf).any(dim=1).nonzero().squeeze(1).tolist()
        parents, chosen = parent.tolist(), order.tolist()
        for row in ended:
            outputs = self.finished[row]
            self.finished[row] = [
                outputs[i] if i < w else self._ids(parents[row][i - w]) for i in chosen[row]
            ]

    def _done(self) -> list[bool]:
        """Whether each sentence's live hypotheses have the maximum length or can no longer win."""
        worst = self.finished_score[:, self.config.n_best - 1]
        won = worst >= self.log_p[:, 0] / self.largest_penalty
        length = len(self.steps)
        parts = zip(self.max_length, won.tolist(), strict=True)
        return [length >= longest or has_won for longest, has_won in parts]

    def drop(self, parents: Int[Tensor, " N"]) -> Int[Tensor, " M"]:
        """Drop the sentences that are done; return the parents of the others."""
        left = not_done(self.done)
        self.sentence = [self.sentence[row] for row in left]
        self.max_length = [self.max_length[row] for row in left]
        self.finished = [self.finished[row] for row in left]
        kept = torch.tensor(left, device=parents.device)
        self.largest_penalty = self.largest_penalty[kept]
        self.first_row = self.first_row[: len(left)]
        self.log_p = self.log_p[kept]
        self.finished_log_p = self.finished_log_p[kept]
        self.finished_score = self.finished_score[kept]
        w = self.config.beam_size
        self.last, parents = (x.view(-1, w)[kept].flatten() for x in (self.last, parents))
        self.steps[-1] = BackPointers(self.last.tolist(), parents.tolist())
        return parents

    def result(self, row: int) -> list[Hypothesis]:
        """The best finished outputs, or the live ones if none finished in time."""
        finished = zip(
            self.finished[row],
            self.finished_log_p[row].tolist(),
            self.finished_score[row].tolist(),
            strict=True,
        )
        outputs = [Hypothesis(*one) for one in finished if one[2] > -math.inf]
        if not outputs:
            penalty = length_penalty(len(self.steps), self.config.length_penalty)
            outputs = [
                Hypothesis(ids, log_p, log_p / penalty, finished=False)
                for ids, log_p in self._live(row)
            ]
        return outputs[: self.config.n_best]

    def partial(self, row: int) -> Partial:
        """The best hypothesis so far, and the length of its stable prefix.

        The stable prefix is common to all hypotheses that can still win: the best finished one and
        the live ones whose bound is not below its score.
        """
        penalty = length_penalty(len(self.steps), self.config.length_penalty)
        best = float(self.finished_score[row, 0])
        bounds = (self.log_p[row] / self.largest_penalty[row]).tolist()
        # Not strict: `_live` omits hypotheses whose log p is −∞, which are last.
        rivals = [
            (log_p / penalty, ids)
            for (ids, log_p), bound in zip(self._live(row), bounds, strict=False)
            if bound >= best
        ]
        if best > -math.inf:
            rivals.append((best, self.finished[row][0]))
        _, ids = max(rivals, default=(best, ()))
        return Partial(ids, stable=common_prefix_length([ids for _, ids in rivals]))

    def _live(self, row: int) -> list[tuple[tuple[int, ...], float]]:
        """The live hypotheses of a sentence with their log p, best first."""
        w = self.config.beam_size
        rows = range(row * w, (row + 1) * w)
        each = zip(map(self._ids, rows), self.log_p[row].tolist(), strict=True)
        return [(ids, log_p) for ids, log_p in each if log_p > -math.inf]

    def _ids(self, row: int) -> tuple[int, ...]:
        """The tokens of a live hypothesis, read along its back pointers."""
        ids = []
        for token, parent in reversed(self.steps):
            ids.append(token[row])
            row = parent[row]
        return tuple(reversed(ids))


def common_prefix_length(outputs: Sequence[tuple[int, ...]]) -> int:
    """The number of leading tokens that all outputs have in common."""
    columns = zip(*outputs, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))


def stream(states: Iterable[State]) -> Iterator[Partial]:
    """The partial output after each step of a search for one sentence.

    The last value contains the outputs that `search` returns. The best of them starts with every
    token that was stable before. With beam size 1, all tokens are stable immediately.
    """
    for state in states:
        if not state.done[0]:
            yield state.partial(0)
            continue
        outputs = tuple(state.result(0))
        ids = outputs[0].ids if outputs else ()
        yield Partial(ids, stable=len(ids), outputs=outputs)
