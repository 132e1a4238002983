"""One row per sentence, to its end: the likeliest token at each step, or one drawn at random."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from transept.decoding.config import SamplingConfig
from transept.decoding.step import Hypothesis, Partial, Step, length_penalty, ranking, results
from transept.runtime.seed import derive_seed
from transept.shapes import Float, Int, Tensor

Choose = Callable[
    [Int[Tensor, " N"] | None, list[int]], tuple[Float[Tensor, " N"], Int[Tensor, " N"]]
]
"""Appends a token to each row, and chooses the next one: its log p, and its id.

It is also given the number of each row's sentence.
"""


def greedy_search(
    step: Step, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> list[Hypothesis]:
    """Beam size 1: stops at the first end symbol; the penalty only scales the score."""
    states = greedy_states(step, max_lengths, alpha, eos_id)
    return [best for (best,) in results(states, len(max_lengths))]


def greedy_states(
    step: Step, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> Iterator["Rows"]:
    """Greedy search, step by step."""
    best = ranking(step)

    def choose(tokens: Tensor | None, _: list[int]) -> tuple[Tensor, Tensor]:
        log_p, token = best(tokens, 1)
        return log_p[:, 0], token[:, 0]

    return one_by_one(step, choose, max_lengths, alpha, eos_id)


def one_by_one(
    step: Step, choose: Choose, max_lengths: Sequence[int], alpha: float, eos_id: int
) -> Iterator["Rows"]:
    """Follow a single row of each sentence to its end."""
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
    """What each output ends in."""
    log_p: Float[Tensor, " B"]
    ids: list[list[int]] = field(init=False)
    done: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [[] for _ in self.sentence]
        self._follow()

    def append(self, log_p: Float[Tensor, " B"], token: Int[Tensor, " B"]) -> None:
        """Grow each by a token."""
        self.last = token
        self.log_p = self.log_p + log_p
        self._follow()

    def _follow(self) -> None:
        """Write the last tokens down, and look for ends."""
        for ids, token in zip(self.ids, self.last.tolist(), strict=True):
            ids.append(token)
        parts = zip(self.ids, self.max_length, strict=True)
        self.done = [ids[-1] == self.eos_id or len(ids) >= most for ids, most in parts]

    def drop(self) -> Int[Tensor, " B"]:
        """Drop the sentences that are done; return the rows of the others."""
        left = [row for row, done in enumerate(self.done) if not done]
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
        """The output so far, all of it stable: a token that was chosen stays."""
        (best,) = self.result(row)
        return Partial(best.ids, stable=len(best.ids))


def seed_of_draw(seed: int, source: Sequence[int], number: int) -> int:
    """The seed of one draw of a sentence. It does not depend on what else is drawn with it."""
    return derive_seed(seed, number, *source)


def sample(
    step: Step,
    max_lengths: Sequence[int],
    seeds: Sequence[int],
    config: SamplingConfig,
    eos_id: int,
) -> list[Hypothesis]:
    """One output for each row. Scores are plain log-probabilities under the model.

    Args:
        step: The model.
        max_lengths: The longest output of each row, end symbol counted.
        seeds: A seed for each row, used instead of the config's: see `seed_of_draw`.
        config: From which part of the distribution to draw.
        eos_id: The end symbol.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(tokens: Tensor | None, sentence: list[int]) -> tuple[Tensor, Tensor]:
        log_p = step(tokens)
        p = likelier_part(log_p / config.temperature, config).cpu()
        # A generator for each row: the others in the batch do not change what it draws.
        drawn = [
            torch.multinomial(row, 1, generator=generators[number])
            for row, number in zip(p, sentence, strict=True)
        ]
        token = torch.cat(drawn).to(log_p.device)
        return log_p.gather(1, token[:, None]).squeeze(1), token

    states = one_by_one(step, choose, max_lengths, 0.0, eos_id)
    return [best for (best,) in results(states, len(max_lengths))]


def likelier_part(logits: Float[Tensor, "N V"], config: SamplingConfig) -> Float[Tensor, "N V"]:
    """Probabilities with all but the top-k and top-p tokens at zero."""
    p = logits.softmax(dim=1)
    ordered, tokens = p.sort(dim=1, descending=True, stable=True)
    if config.top_k is not None:
        ordered[:, config.top_k :] = 0.0
    if config.top_p is not None:
        before = ordered.cumsum(dim=1) - ordered
        ordered[before >= config.top_p] = 0.0
    kept = torch.zeros_like(p).scatter(1, tokens, ordered)
    return kept / kept.sum(dim=1, keepdim=True)
