"""Greedy search and sampling: one row per sentence, one token per step."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from transept.decoding.config import SamplingConfig
from transept.decoding.step import (
    Hypothesis,
    Partial,
    Step,
    length_penalty,
    not_done,
    ranking,
    results,
)
from transept.runtime.seed import derive_seed
from transept.shapes import Float, Int, Tensor

Choose = Callable[
    [Int[Tensor, " N"] | None, list[int]], tuple[Float[Tensor, " N"], Int[Tensor, " N"]]
]
"""Appends a token to each row and chooses the next one; returns its log p and its id.

The second argument is the index of each row's sentence.
"""


def greedy_search(
    step: Step, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> list[Hypothesis]:
    """Beam size 1: stop at the first end symbol. The length penalty only scales the score."""
    states = greedy_states(step, max_lengths, alpha, eos_id)
    return [best for (best,) in results(states, len(max_lengths))]


def greedy_states(
    step: Step, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> Iterator["Rows"]:
    """The state of greedy search after each step."""
    best = ranking(step)

    def choose(tokens: Tensor | None, _: list[int]) -> tuple[Tensor, Tensor]:
        log_p, token = best(tokens, 1)
        return log_p[:, 0], token[:, 0]

    return single_row_states(step, choose, max_lengths, alpha, eos_id)


def single_row_states(
    step: Step, choose: Choose, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> Iterator["Rows"]:
    """The state after each step of a search with one row per sentence."""
    numbers = list(range(len(max_lengths)))
    log_p, token = choose(None, numbers)
    rows = Rows(alpha, eos_id, numbers, list(max_lengths), token, log_p)
    yield rows
    while not all(rows.done):
        if any(rows.done):
            step.select(rows.drop())
        rows.append(*choose(rows.last, rows.sentence))
        yield rows


@dataclass(slots=True)
class Rows:
    """One output of each sentence that was not done before the last step."""

    alpha: float
    eos_id: int
    sentence: list[int]
    max_length: list[int]
    last: Int[Tensor, " B"]
    """The last token of each output."""
    log_p: Float[Tensor, " B"]
    ids: list[list[int]] = field(init=False)
    done: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [[] for _ in self.sentence]
        self._follow()

    def append(self, log_p: Float[Tensor, " B"], token: Int[Tensor, " B"]) -> None:
        """Extend each output by a token."""
        self.last = token
        self.log_p = self.log_p + log_p
        self._follow()

    def _follow(self) -> None:
        """Record the last tokens, and check which outputs are done."""
        for ids, token in zip(self.ids, self.last.tolist(), strict=True):
            ids.append(token)
        parts = zip(self.ids, self.max_length, strict=True)
        self.done = [ids[-1] == self.eos_id or len(ids) >= most for ids, most in parts]

    def drop(self) -> Int[Tensor, " B"]:
        """Drop the sentences that are done; return the rows of the others."""
        left = not_done(self.done)
        self.sentence = [self.sentence[row] for row in left]
        self.max_length = [self.max_length[row] for row in left]
        self.ids = [self.ids[row] for row in left]
        rows = torch.tensor(left, device=self.last.device)
        self.last, self.log_p = self.last[rows], self.log_p[rows]
        return rows

    def result(self, row: int) -> list[Hypothesis]:
        """The one output."""
        ids, log_p = self.ids[row], float(self.log_p[row])
        score = log_p / length_penalty(len(ids), self.alpha)
        finished = ids[-1] == self.eos_id
        return [Hypothesis(tuple(ids[:-1] if finished else ids), log_p, score, finished)]

    def partial(self, row: int) -> Partial:
        """The output so far. All of it is stable, because chosen tokens never change."""
        (best,) = self.result(row)
        return Partial(best.ids, stable=len(best.ids))


def sample_seed(seed: int, source: Sequence[int], number: int) -> int:
    """The seed of one sample of a sentence, independent of the other samples in the batch."""
    return derive_seed(seed, number, *source)


def sample(
    step: Step,
    max_lengths: Sequence[int],
    seeds: Sequence[int],
    config: SamplingConfig,
    eos_id: int,
) -> list[Hypothesis]:
    """Sample one output per row. Scores are plain log-probabilities under the model.

    Args:
        step: The model.
        max_lengths: Maximum output length of each row, end symbol included.
        seeds: A seed for each row, used instead of the config's: see `sample_seed`.
        config: Temperature, top-k and top-p.
        eos_id: The end symbol.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(tokens: Tensor | None, sentence: list[int]) -> tuple[Tensor, Tensor]:
        log_p = step(tokens)
        p = top_k_top_p(log_p / config.temperature, config).cpu()
        # Each row has its own generator, so its samples do not depend on the batch.
        samples = [
            torch.multinomial(row, 1, generator=generators[number])
            for row, number in zip(p, sentence, strict=True)
        ]
        token = torch.cat(samples).to(log_p.device)
        return log_p.gather(1, token[:, None]).squeeze(1), token

    states = single_row_states(step, choose, max_lengths, 0.0, eos_id)
    return [best for (best,) in results(states, len(max_lengths))]


def top_k_top_p(logits: Float[Tensor, "N V"], config: SamplingConfig) -> Float[Tensor, "N V"]:
    """Probabilities renormalized over the top-k and top-p tokens; all others are zero."""
    p = logits.softmax(dim=1)
    ordered, tokens = p.sort(dim=1, descending=True, stable=True)
    if config.top_k is not None:
        ordered[:, config.top_k :] = 0.0
    if config.top_p is not None:
        before = ordered.cumsum(dim=1) - ordered
        ordered[before >= config.top_p] = 0.0
    kept = torch.zeros_like(p).scatter(1, tokens, ordered)
    return kept / kept.sum(dim=1, keepdim=True)
