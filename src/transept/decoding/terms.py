"""Beam search for outputs that contain required token sequences.

The method is grid beam search (Hokamp and Liu, 2017) with one beam for all of the grid, as in
dynamic beam allocation (Post and Vilar, 2018). In each step, a hypothesis is extended by its
likeliest tokens, and by every token that starts or continues a required sequence. The extended
hypotheses form banks by the number of required tokens that they still need. All banks get the same
number of rows. So a hypothesis competes only with those that have placed as many required tokens.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from transept.decoding.beam import common_prefix_length
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.decoding.step import Hypothesis, Partial, Step, length_penalty
from transept.shapes import Float, Int, Tensor

Tokens = tuple[int, ...]
MIN_BEAM = 4
"""Minimum beam size of a sentence with required sequences."""
MAX_WIDTH = 32
"""Maximum number of rows of a sentence, if the beam size is not larger."""
MAX_PLACEMENTS = 16
"""Limits the work for sequences that overlap in many ways."""


def width_of(one: Input, config: SearchConfig) -> int:
    """The number of rows of a sentence: if possible, the beam size for each bank.

    It does not depend on other sentences. With fewer rows, an output more often contains a term in
    addition to the word that it replaces.
    """
    n_banks = 1 + sum(map(len, one.required))
    return max(config.beam_size, min(MAX_WIDTH, n_banks * _bank_size(config)))


def _bank_size(config: SearchConfig) -> int:
    return max(MIN_BEAM, config.beam_size)


def term_states(
    step: Step, inputs: Sequence[Input], config: SearchConfig, eos_id: int
) -> Iterator["TermBeams"]:
    """The state of the search after each step.

    A hypothesis that cannot hold all required sequences within the maximum length is dropped. If
    that applies to all, the most complete ones are the outputs, and they are not finished.

    Args:
        step: The model, with one row per sentence.
        inputs: The sentences. Their `width_of` must be the same.
        config: Beam size, length penalty, number of outputs.
        eos_id: The end symbol.
    """
    beams = TermBeams([TermBeam(one, config, eos_id) for one in inputs])
    beams.extend(step(None))
    yield beams
    while not all(beams.done):
        beams.drop()
        step.select(beams.parents())
        beams.extend(step(beams.last()))
        yield beams


class Placement(NamedTuple):
    """One way to find the required sequences in an output. Occurrences do not overlap."""

    left: tuple[Tokens, ...]
    """The sequences that are not started."""
    rest: Tokens | None = None
    """The missing tokens of the current sequence. None between sequences.

    Empty after its last token: the next token decides whether the sequence counts.
    """

    @property
    def needed(self) -> int:
        """The number of required tokens that are not placed."""
        return sum(map(len, self.left)) + len(self.rest or ())

    def implies(self, other: "Placement") -> bool:
        """Whether every continuation that completes the other placement completes this one."""
        return self.rest in (None, other.rest) and Counter(self.left) <= Counter(other.left)


Placements = tuple[Placement, ...]
"""All ways to find the required sequences in an output, without those that others imply."""


class Requirement:
    """The required sequences of a sentence."""

    def __init__(self, one: Input) -> None:
        self._spelling = one.spelling
        required = sorted(tuple(ids) for ids in one.required if ids)
        self.start: Placements = (Placement(tuple(required)),)
        forms = [self._forms(ids, before) for ids in required for before in (-1, None)]
        self._tokens = {token for each in forms for form in each for token in form}
        self._known: dict[tuple[Placements, int, object], tuple[Placements, int]] = {}

    def _forms(self, ids: Tokens, before: int | None) -> list[Tokens]:
        """The forms of a sequence after a token, or at the start of an output (None)."""
        first, forms = self._spelling.first, self._spelling.forms.get(ids, ())
        if before is None:
            return [ids, *forms, *first.get(ids, ())]
        return [*forms] if forms and before in self._spelling.opening else [ids, *forms]

    def wanted(self, placements: Placements, before: int | None) -> set[int]:
        """The tokens that start or continue a sequence."""
        left = {ids for one in placements if not one.rest for ids in one.left}
        # A bracket is not required. If an output has one, the form that it starts is continued.
        optional = self._spelling.forms
        starts = {
            form[0]
            for ids in left
            for form in self._forms(ids, before)
            if form not in optional.get(ids, ())
        }
        return starts | {one.rest[0] for one in placements if one.rest}

    def extend(
        self, placements: Placements, before: int | None, token: int
    ) -> tuple[Placements, int]:
        """The placements after another token, and the number of required tokens not placed.

        Args:
            placements: The placements of an output.
            before: Its last token. None: it is empty.
            token: The token to append.
        """
        # All tokens that occur in no sequence have the same effect.
        kind = token if token in self._tokens else -1
        after, opening = self._spelling.after, self._spelling.opening
        context = after is None or token in after, None if before is None else before in opening
        key = placements, kind, context
        known = self._known.get(key)
        if known is None:
            extended = _without_implied(self._extended(placements, before, token))
            known = self._known[key] = extended, needed(extended)
        return known

    def _extended(
        self, placements: Placements, before: int | None, token: int
    ) -> Iterator[Placement]:
        after = self._spelling.after
        for left, rest in placements:
            if rest:
                if rest[0] == token:
                    yield Placement(left, rest[1:])
            elif rest is None or after is None or token in after:
                yield Placement(left)
                for number, ids in enumerate(left):
                    others = (*left[:number], *left[number + 1 :])
                    for form in self._forms(ids, before):
                        if form[0] == token:
                            yield Placement(others, form[1:])


def needed(placements: Placements) -> int:
    """The number of required tokens that are not placed."""
    return min(one.needed for one in placements)


def _without_implied(placements: Iterable[Placement]) -> Placements:
    kept: list[Placement] = []
    # A placement can only imply one that needs as many tokens, or more. Of two with the same number
    # of tokens, the one without a current sequence may imply the other.
    for one in sorted({*placements}, key=lambda one: (one.needed, one.rest or (), one.left)):
        if not any(other.implies(one) for other in kept):
            kept.append(one)
    # One without a current sequence must remain: others end if their sequence does not continue.
    kept.sort(key=lambda one: one.rest is not None)
    return tuple(kept[:MAX_PLACEMENTS])


class Live(NamedTuple):
    """A hypothesis that may be extended."""

    log_p: float
    token: int
    row: int
    """The row of the step that it extends."""
    before: "Live | None"
    """The hypothesis without its last token. None: it has no token."""
    placements: Placements
    needed: int

    @property
    def last(self) -> int | None:
        """The last token."""
        return None if self.before is None else self.token

    @property
    def ids(self) -> Tokens:
        """The tokens."""
        ids: list[int] = []
        here = self
        while here.before is not None:
            ids.append(here.token)
            here = here.before
        return tuple(reversed(ids))


@dataclass(slots=True)
class TermBeam:
    """The hypotheses of one sentence."""

    one: Input
    config: SearchConfig
    eos_id: int
    width: int = field(init=False)
    """The number of rows."""
    requirement: Requirement = field(init=False)
    live: list[Live] = field(init=False)
    finished: list[Hypothesis] = field(default_factory=list)
    """At most `beam_size`, best first."""
    length: int = 0
    done: bool = False

    def __post_init__(self) -> None:
        self.width = width_of(self.one, self.config)
        self.requirement = Requirement(self.one)
        start = self.requirement.start
        self.live = [Live(0.0, self.eos_id, 0, None, start, needed(start))]

    def extend(self, options: Sequence[Mapping[int, float]], first_row: int) -> None:
        """Extend every live hypothesis by a token.

        Args:
            options: The tokens to try for each live hypothesis, and their log p.
            first_row: The row of the first one.
        """
        self.length += 1
        extended = self._that_fit(self._extended(options, first_row))
        banks: dict[int, list[Live]] = {}
        for one in sorted(extended, key=lambda one: -one.log_p):
            banks.setdefault(self._bank(one.needed), []).append(one)
        if 0 in banks:
            # As in beam search, an output ends if its end symbol is among the 2·W best.
            best = banks[0][: 2 * self.width]
            self._finish([one for one in best if one.token == self.eos_id])
            banks[0] = [one for one in banks[0] if one.token != self.eos_id]
        self.live = _in_turn([banks[key] for key in sorted(banks)], self.width)
        self.done = self._is_done()
        if self.live:
            nothing = self.live[0]._replace(log_p=-math.inf)
            self.live += [nothing] * (self.width - len(self.live))

    def _extended(self, options: Sequence[Mapping[int, float]], first_row: int) -> Iterator[Live]:
        extend = self.requirement.extend
        for row, (live, tokens) in enumerate(zip(self.live, options, strict=True), first_row):
            last = live.last
            for token, more in tokens.items():
                log_p = live.log_p + more
                if log_p == -math.inf:
                    continue
                if token != self.eos_id:
                    placed = extend(live.placements, last, token)
                    yield Live(log_p, token, row, live, *placed)
                elif live.needed == 0:
                    yield Live(log_p, token, row, live, live.placements, 0)

    def _that_fit(self, extended: Iterable[Live]) -> list[Live]:
        """Those that can hold all sequences and the end symbol, or all if none of them can."""
        every = [*extended]
        room = self.one.max_length - self.length
        fitting = [one for one in every if one.needed == 0 or one.needed < room]
        return fitting if fitting or self.finished else every

    def _bank(self, n_needed: int) -> int:
        """The bank of hypotheses that need this number of tokens. There are at most W banks."""
        most, n_tokens = self.width - 1, needed(self.requirement.start)
        return n_needed if n_tokens <= most else math.ceil(n_needed * most / n_tokens)

    def _finish(self, ended: Iterable[Live]) -> None:
        penalty = length_penalty(self.length, self.config.length_penalty)
        found = [Hypothesis(one.ids[:-1], one.log_p, one.log_p / penalty) for one in ended]
        self.finished = sorted([*self.finished, *found], key=lambda one: -one.score)
        del self.finished[self.config.beam_size :]

    def _is_done(self) -> bool:
        """Whether the live hypotheses have the maximum length or can no longer win."""
        if not self.live or self.length >= self.one.max_length:
            return True
        best = max(one.log_p for one in self.live)
        outputs = self.finished[: self.config.n_best]
        full = len(outputs) == self.config.n_best
        return full and outputs[-1].score >= best / self._largest_penalty

    @property
    def _largest_penalty(self) -> float:
        return length_penalty(self.one.max_length, self.config.length_penalty)

    def result(self) -> list[Hypothesis]:
        """The best finished outputs, or the most complete live ones if none finished in time."""
        outputs = self.finished
        if not outputs:
            penalty = length_penalty(self.length, self.config.length_penalty)
            outputs = [
                Hypothesis(one.ids, one.log_p, one.log_p / penalty, finished=False)
                for one in sorted(self._possible(), key=lambda one: (one.needed, -one.log_p))
            ]
        return outputs[: self.config.n_best]

    def partial(self) -> Partial:
        """The best hypothesis so far, and the prefix common to all that can still win."""
        penalty = length_penalty(self.length, self.config.length_penalty)
        best = self.finished[0].score if self.finished else -math.inf
        rivals = [
            (one.log_p / penalty, one.ids)
            for one in self._possible()
            if one.log_p / self._largest_penalty >= best
        ]
        rivals += [(one.score, one.ids) for one in self.finished[:1]]
        _, ids = max(rivals, default=(best, ()))
        return Partial(ids, stable=common_prefix_length([ids for _, ids in rivals]))

    def _possible(self) -> list[Live]:
        return [one for one in self.live if one.log_p > -math.inf]


def _in_turn(banks: Sequence[Sequence[Live]], n: int) -> list[Live]:
    """The best of each bank, then the second of each, and so on: n in all."""
    turns = itertools.zip_longest(*banks)
    return [*itertools.islice((one for turn in turns for one in turn if one is not None), n)]


@dataclass(slots=True)
class TermBeams:
    """The hypotheses of each sentence that was not done before the last step."""

    beams: list[TermBeam]
    sentence: list[int] = field(init=False)
    done: list[bool] = field(default_factory=list)
    device: torch.device = field(init=False)

    def __post_init__(self) -> None:
        self.sentence = [*range(len(self.beams))]

    def extend(self, log_p: Float[Tensor, "N V"]) -> None:
        """Extend every live hypothesis of every sentence by a token."""
        self.device, options = log_p.device, self._options(log_p)
        n = len(options) // len(self.beams)
        for number, beam in enumerate(self.beams):
            beam.extend(options[number * n : (number + 1) * n], number * n)
        self.done = [beam.done for beam in self.beams]

    def _options(self, log_p: Float[Tensor, "N V"]) -> list[dict[int, float]]:
        """The likeliest tokens of each row, and those of required sequences."""
        n_best = 2 * _bank_size(self.beams[0].config)
        top, token = log_p.topk(min(n_best, log_p.shape[1]), dim=1)
        parts = zip(token.tolist(), top.tolist(), strict=True)
        options = [dict(zip(tokens, values, strict=True)) for tokens, values in parts]
        live = ((beam.requirement, one) for beam in self.beams for one in beam.live)
        wanted = [
            (row, token)
            for row, (requirement, one) in enumerate(live)
            for token in sorted(requirement.wanted(one.placements, one.last))
        ]
        if wanted:
            rows, tokens = zip(*wanted, strict=True)
            values = log_p[torch.tensor(rows), torch.tensor(tokens)].tolist()
            for row, one, value in zip(rows, tokens, values, strict=True):
                options[row][one] = value
        return options

    def drop(self) -> None:
        """Drop the sentences that are done."""
        left = [number for number, done in enumerate(self.done) if not done]
        self.beams = [self.beams[number] for number in left]
        self.sentence = [self.sentence[number] for number in left]

    def parents(self) -> Int[Tensor, " N"]:
        """The rows that the live hypotheses extend."""
        rows = [one.row for beam in self.beams for one in beam.live]
        return torch.tensor(rows, device=self.device)

    def last(self) -> Int[Tensor, " N"]:
        """The last token of each live hypothesis."""
        tokens = [one.token for beam in self.beams for one in beam.live]
        return torch.tensor(tokens, device=self.device)

    def result(self, row: int) -> list[Hypothesis]:
        """The outputs of a sentence that is done, best first."""
        return self.beams[row].result()

    def partial(self, row: int) -> Partial:
        """The partial output of a sentence that may not be done."""
        return self.beams[row].partial()
