"""Beam search with the paper's length penalty and a safe early end (section 6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from transept.decoding.config import SearchConfig
from transept.decoding.greedy import greedy_search
from transept.decoding.hypothesis import Hypothesis
from transept.decoding.length import length_penalty
from transept.decoding.step import Step
from transept.shapes import Bool, Float, Int, Tensor


def search(
    step: Step, max_lengths: Sequence[int], config: SearchConfig, eos_id: int
) -> list[list[Hypothesis]]:
    """The best outputs for each sentence, best first.

    Args:
        step: The model, with one row a sentence.
        max_lengths: The longest output of each sentence, end symbol counted.
        config: Beam size, length penalty, number of outputs.
        eos_id: The end symbol.
    """
    if config.beam_size == 1:
        return [[one] for one in greedy_search(step, max_lengths, config.length_penalty, eos_id)]
    return beam_search(step, max_lengths, config, eos_id)


def beam_search(
    step: Step, max_lengths: Sequence[int], config: SearchConfig, eos_id: int
) -> list[list[Hypothesis]]:
    """Each step keeps 2·W candidates of a sentence: W go on alive, W may be finished.

    A sentence is done when its W finished outputs all score at least as well as any live one still
    could: log P only falls, and a negative number is largest under the largest penalty, so a live
    hypothesis is bounded by log P / lp(maximum length). What is returned does not depend on
    `n_best`, nor on what else is in the batch.
    """
    first = step(None)
    beams = _Beams.start(first, max_lengths, config)
    step.select(beams.rows_of_one_each())
    log_p = first.repeat_interleave(config.beam_size, dim=0)
    results: list[list[Hypothesis]] = [[] for _ in max_lengths]
    while True:
        parents = beams.extend(log_p, eos_id)
        done = beams.done()
        if done.any():
            for row in done.nonzero().squeeze(1).tolist():
                results[int(beams.sentence[row])] = beams.result(row)
            if done.all():
                return results
            parents = beams.keep(~done, parents)
        step.select(parents.flatten())
        log_p = step(beams.tokens[:, :, -1].flatten())


@dataclass(slots=True)
class _Beams:
    """W live and W finished hypotheses for each sentence that is not done."""

    config: SearchConfig
    sentence: Int[Tensor, " B"]
    max_length: Int[Tensor, " B"]
    log_p: Float[Tensor, "B W"]
    tokens: Int[Tensor, "B W T"]
    finished_score: Float[Tensor, "B W"]
    finished_log_p: Float[Tensor, "B W"]
    finished: list[list[tuple[int, ...]]]

    @classmethod
    def start(
        cls, log_p: Float[Tensor, "B V"], max_lengths: Sequence[int], config: SearchConfig
    ) -> "_Beams":
        n, w = len(max_lengths), config.beam_size
        nothing = log_p.new_full((n, w), -torch.inf)
        live = nothing.clone()
        live[:, 0] = 0.0  # all rows are alike at first: one of them stands for all
        return cls(
            config=config,
            sentence=torch.arange(n),
            max_length=torch.tensor(max_lengths),
            log_p=live,
            tokens=torch.empty(n, w, 0, dtype=torch.long),
            finished_score=nothing,
            finished_log_p=nothing.clone(),
            finished=[[()] * w for _ in range(n)],
        )

    def rows_of_one_each(self) -> Int[Tensor, " N"]:
        """The rows that make W of each sentence's one."""
        return torch.arange(len(self.sentence)).repeat_interleave(self.config.beam_size)

    def extend(self, log_p: Float[Tensor, "N V"], eos_id: int) -> Int[Tensor, "B W"]:
        """Grow every live hypothesis by a token; give the rows that the new ones grew from."""
        n, w = self.log_p.shape
        vocab_size = log_p.shape[1]
        keep = min(2 * w, vocab_size)
        best, token = log_p.topk(keep, dim=1)
        candidates = (best.view(n, w, keep) + self.log_p[:, :, None]).flatten(1)
        total, place = candidates.topk(min(2 * w, candidates.shape[1]), dim=1)
        parent = place // keep
        token = token.view(n, w * keep).gather(1, place)
        is_end = token == eos_id
        self._finish(total.masked_fill(~is_end, -torch.inf), parent)
        live, order = total.masked_fill(is_end, -torch.inf).topk(w, dim=1)
        parent, token = parent.gather(1, order), token.gather(1, order)
        grown = self.tokens.gather(1, parent[:, :, None].expand(-1, -1, self.tokens.shape[2]))
        self.tokens = torch.cat([grown, token[:, :, None]], dim=2)
        self.log_p = live
        return parent + torch.arange(n)[:, None] * w

    def _finish(self, log_p: Float[Tensor, "B C"], parent: Int[Tensor, "B C"]) -> None:
        """Let candidates that end compete with the finished ones; |Y| counts the end symbol."""
        ended = (log_p > -torch.inf).any(dim=1)
        if not ended.any():
            return
        w = self.config.beam_size
        penalty = length_penalty(self.tokens.shape[2] + 1, self.config.length_penalty)
        score = torch.cat([self.finished_score, log_p / penalty], dim=1)
        kept, order = score.topk(w, dim=1)
        self.finished_log_p = torch.cat([self.finished_log_p, log_p], dim=1).gather(1, order)
        self.finished_score = kept
        for row in ended.nonzero().squeeze(1).tolist():
            outputs = self.finished[row]
            self.finished[row] = [
                outputs[i] if i < w else tuple(self.tokens[row, int(parent[row, i - w])].tolist())
                for i in order[row].tolist()
            ]

    def done(self) -> Bool[Tensor, " B"]:
        """Sentences whose live hypotheses are at their longest or can no longer win."""
        alpha = self.config.length_penalty
        longest = [length_penalty(length, alpha) for length in self.max_length.tolist()]
        bound = self.log_p.amax(dim=1) / torch.tensor(longest).to(self.log_p)
        at_end = self.tokens.shape[2] >= self.max_length
        return at_end | (self.finished_score.amin(dim=1) >= bound)

    def keep(self, rows: Bool[Tensor, " B"], parents: Int[Tensor, "B W"]) -> Int[Tensor, "M W"]:
        """Drop the sentences that are done."""
        kept = rows.nonzero().squeeze(1)
        self.sentence, self.max_length = self.sentence[kept], self.max_length[kept]
        self.log_p, self.tokens = self.log_p[kept], self.tokens[kept]
        self.finished_score = self.finished_score[kept]
        self.finished_log_p = self.finished_log_p[kept]
        self.finished = [self.finished[row] for row in kept.tolist()]
        return parents[kept]

    def result(self, row: int) -> list[Hypothesis]:
        """The best finished outputs; where nothing was finished in time, the live ones."""
        outputs = [
            Hypothesis(ids, log_p, score)
            for ids, log_p, score in zip(
                self.finished[row],
                self.finished_log_p[row].tolist(),
                self.finished_score[row].tolist(),
                strict=True,
            )
            if score > -float("inf")
        ]
        if not outputs:
            penalty = length_penalty(self.tokens.shape[2], self.config.length_penalty)
            outputs = [
                Hypothesis(tuple(ids), log_p, log_p / penalty, finished=False)
                for ids, log_p in zip(
                    self.tokens[row].tolist(), self.log_p[row].tolist(), strict=True
                )
                if log_p > -float("inf")
            ]
        return outputs[: self.config.n_best]
