"""Beam search on the device: one step for all beams (section 6.1).

`decoding.beam` is the reference. These kernels handle all sentences at once, without the host. Each
sentence has a slot in the tensors. Triton requires powers of two: WP and KP are W and K, rounded up
to one.
"""

import dataclasses
from dataclasses import dataclass
from typing import Self, get_type_hints

import torch
import triton
import triton.language as tl

from transept.engines.kernels.logits import SpecialIds, likeliest
from transept.shapes import Float, Int, Tensor


@dataclass(frozen=True, slots=True)
class Slotted:
    """Tensors with an axis of slots, named R in their shapes; those without R are shared."""

    def first(self, n_slots: int) -> Self:
        """Views of the first slots."""
        parts = {
            name: getattr(self, name).narrow(axis, 0, n_slots)
            for name, axis in _axes(type(self)).items()
        }
        return dataclasses.replace(self, **parts)

    def by_slot(self) -> list[Tensor]:
        """Views of all tensors with slots, with the slots as first axis."""
        return [getattr(self, name).movedim(axis, 0) for name, axis in _axes(type(self)).items()]


def _axes(kind: type[Slotted]) -> dict[str, int]:
    """The axis of the slots, for each field that has one."""
    shapes = {name: hint.dim_str.split() for name, hint in get_type_hints(kind).items()}
    return {name: shape.index("R") for name, shape in shapes.items() if "R" in shape}


@dataclass(frozen=True, slots=True)
class DeviceBeams(Slotted):
    """R sentences, each with W live and W finished hypotheses. Updated in position."""

    token: Int[Tensor, "R W"]
    """The last token of each live hypothesis."""
    log_p: Float[Tensor, "R W"]
    length: Int[Tensor, " R"]
    """Tokens of the live hypotheses."""
    max_length: Int[Tensor, " R"]
    largest_penalty: Float[Tensor, " R"]
    """lp of the maximum length, which bounds the score that a live hypothesis can reach."""
    done: Int[Tensor, " R"]
    """1 for finished sentences, which no longer change."""
    origin: Int[Tensor, "2 R W L"]
    """For each row and position, the row of the sentence that stores its keys and values.

    A double buffer: a step reads the table of the length's parity and writes the other one.
    """
    parents: Int[Tensor, "R L W"]
    """Back pointers: the hypothesis that was extended, for each length."""
    tokens: Int[Tensor, "R L W"]
    """The token that was appended, for each length."""
    finished_score: Float[Tensor, "R W"]
    finished_log_p: Float[Tensor, "R W"]
    finished_length: Int[Tensor, "R W"]
    """Tokens of a finished hypothesis, without its end symbol."""
    finished_parent: Int[Tensor, "R W"]
    """The index of its last hypothesis, among those of that length."""
    penalties: Float[Tensor, " lengths"]
    """lp of each length."""

    @classmethod
    def empty(cls, n_slots: int, width: int, penalties: Float[Tensor, " lengths"]) -> "DeviceBeams":
        """Empty slots.

        Args:
            n_slots: R, the number of slots.
            width: W, the number of hypotheses per sentence.
            penalties: lp of each length from 0 to the maximum output length.
        """
        r, w, length, device = n_slots, width, len(penalties) - 1, penalties.device

        def numbers(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float32, device=device)

        def counts(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            token=counts(r, w), log_p=numbers(r, w), length=counts(r), max_length=counts(r),
            largest_penalty=numbers(r), done=counts(r) + 1,
            origin=counts(2, r, w, length, dtype=torch.uint8),
            parents=counts(r, length, w, dtype=torch.uint8), tokens=counts(r, length, w),
            finished_score=numbers(r, w), finished_log_p=numbers(r, w),
            finished_length=counts(r, w), finished_parent=counts(r, w),
            penalties=penalties,
        )  # fmt: skip

    def begin(
        self, slots: Int[Tensor, " B"], max_lengths: Int[Tensor, " B"], start_id: int
    ) -> None:
        """Initialize these slots for new sentences."""
        width = self.token.shape[1]
        _begin[(len(slots),)](
            slots, max_lengths, self.token, self.log_p, self.length, self.max_length,
            self.largest_penalty, self.done, self.finished_score, self.penalties, start_id,
            W=width, WP=triton.next_power_of_2(width), num_warps=1,
        )  # fmt: skip


def advance(beams: DeviceBeams, logits: Float[Tensor, "N C"], symbols: SpecialIds) -> None:
    """Extend every sentence that is not done by a token.

    A beam of W considers 2·W candidates, so that at least W of them do not end. With W = 1 this is
    greedy search, with a single candidate.
    """
    width = beams.token.shape[1]
    k = 1 if width == 1 else 2 * width
    log_p, token = likeliest(logits, k, symbols, beams.done, width)
    _advance[(len(beams.done),)](
        log_p, token,
        beams.token, beams.log_p, beams.length, beams.max_length, beams.largest_penalty,
        beams.done, beams.origin, beams.parents, beams.tokens,
        beams.finished_score, beams.finished_log_p, beams.finished_length, beams.finished_parent,
        beams.penalties, symbols.eos_id, beams.origin.stride(0), beams.origin.shape[3],
        W=width, WP=triton.next_power_of_2(width), K=k, KP=triton.next_power_of_2(k),
        POSITIONS=64, num_warps=1,
    )  # fmt: skip


@triton.jit
def _begin(
    slots, max_lengths, token, log_p, length, max_length, largest_penalty, done, finished_score,
    penalties, start_id, W: tl.constexpr, WP: tl.constexpr,
):  # fmt: skip
    slot, longest = tl.load(slots + tl.program_id(0)), tl.load(max_lengths + tl.program_id(0))
    w = tl.arange(0, WP)
    nothing = tl.full((WP,), float("-inf"), tl.float32)
    tl.store(token + slot * W + w, tl.zeros((WP,), tl.int32) + start_id, w < W)
    # All rows are equal at first: only one is live.
    tl.store(log_p + slot * W + w, tl.where(w == 0, 0.0, nothing), w < W)
    tl.store(finished_score + slot * W + w, nothing, w < W)
    tl.store(length + slot, 0)
    tl.store(max_length + slot, longest.to(tl.int32))
    tl.store(largest_penalty + slot, tl.load(penalties + longest))
    tl.store(done + slot, 0)


@triton.jit
def _advance(
    value, candidate,
    token, log_p, length, max_length, largest_penalty, done, origin, parents, tokens,
    finished_score, finished_log_p, finished_length, finished_parent, penalties,
    eos_id, table_size, n_positions,
    W: tl.constexpr, WP: tl.constexpr, K: tl.constexpr, KP: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """Advance one sentence. A single warp does it, so everything is read before it is written."""
    slot = tl.program_id(0)
    if tl.load(done + slot) != 0:
        return
    here = tl.load(length + slot)
    best, parent, new = _candidates(value, candidate, log_p, slot, W, WP, K, KP)
    ends = (new == eos_id) & (best > float("-inf"))
    # The penalty counts the end symbol.
    ended = tl.where(ends, best / tl.load(penalties + here + 1), float("-inf"))
    worst = _finish(
        finished_score, finished_log_p, finished_length, finished_parent,
        ended, best, parent, here, slot, W, WP, KP,
    )  # fmt: skip
    going = tl.where(ends, float("-inf"), best)
    first, live_parent = _extend(
        token, log_p, parents, tokens, going, parent, new, here, slot, n_positions, W, WP, KP
    )
    before = origin + (here % 2) * table_size
    after = origin + (1 - here % 2) * table_size
    _inherit(before, after, live_parent, here, slot, n_positions, W, WP, POSITIONS)
    # Done: at the maximum length, or no live hypothesis can win any more.
    won = worst >= first / tl.load(largest_penalty + slot)
    tl.store(length + slot, here + 1)
    tl.store(done + slot, (won | (here + 1 >= tl.load(max_length + slot))).to(tl.int32))


@triton.jit
def _candidates(
    value, candidate, log_p, slot,
    W: tl.constexpr, WP: tl.constexpr, K: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    """The K best extensions of the beam: their log p, row and token."""
    nothing = float("-inf")
    w, k = tl.arange(0, WP), tl.arange(0, KP)
    row = slot * W + w
    at = row[:, None] * K + k[None, :]
    real = (w < W)[:, None] & (k < K)[None, :]
    live = tl.load(log_p + row, w < W, nothing)
    x = tl.load(value + at, real, nothing)
    x = tl.reshape(tl.where(real, live[:, None] + x, nothing), (WP * KP,))
    tokens = tl.reshape(tl.load(candidate + at, real, 0), (WP * KP,))
    number = tl.arange(0, WP * KP)
    best = tl.full((KP,), nothing, tl.float32)
    parent = tl.zeros((KP,), tl.int32)
    new = tl.zeros((KP,), tl.int32)
    for rank in tl.static_range(K):
        found, index = tl.max(x, 0, return_indices=True)
        is_it, mine = number == index, k == rank
        x = tl.where(is_it, nothing, x)
        best = tl.where(mine, found, best)
        parent = tl.where(mine, tl.minimum(index // KP, W - 1), parent)
        new = tl.where(mine, _only(is_it, tokens), new)
    return best, parent, new


@triton.jit
def _finish(
    finished_score, finished_log_p, finished_length, finished_parent,
    ended, best, parent, here, slot,
    W: tl.constexpr, WP: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    """Keep the W best of finished hypotheses and candidates that end; return the worst score."""
    w, k = tl.arange(0, WP), tl.arange(0, KP)
    row = slot * W + w
    old_score = tl.load(finished_score + row, w < W, float("-inf"))
    old_log_p = tl.load(finished_log_p + row, w < W, 0.0)
    old_length = tl.load(finished_length + row, w < W, 0)
    old_parent = tl.load(finished_parent + row, w < W, 0)
    score, score_log_p, score_length, score_parent = old_score, old_log_p, old_length, old_parent
    worst = float("-inf")
    for rank in tl.static_range(W):
        a, a_at = tl.max(old_score, 0, return_indices=True)
        b, b_at = tl.max(ended, 0, return_indices=True)
        stays, is_a, is_b, mine = a >= b, w == a_at, k == b_at, w == rank
        old_score = tl.where(is_a, tl.where(stays, float("-inf"), a), old_score)
        ended = tl.where(is_b, tl.where(stays, b, float("-inf")), ended)
        worst = tl.maximum(a, b)
        of_log_p = tl.where(stays, _only(is_a, old_log_p), _only(is_b, best))
        of_length = tl.where(stays, _only(is_a, old_length), here)
        of_parent = tl.where(stays, _only(is_a, old_parent), _only(is_b, parent))
        score = tl.where(mine, worst, score)
        score_log_p = tl.where(mine, of_log_p, score_log_p)
        score_length = tl.where(mine, of_length, score_length)
        score_parent = tl.where(mine, of_parent, score_parent)
    tl.store(finished_score + row, score, w < W)
    tl.store(finished_log_p + row, score_log_p, w < W)
    tl.store(finished_length + row, score_length, w < W)
    tl.store(finished_parent + row, score_parent, w < W)
    return worst


@triton.jit
def _extend(
    token, log_p, parents, tokens, going, parent, new, here, slot, n_positions,
    W: tl.constexpr, WP: tl.constexpr, KP: tl.constexpr,
):  # fmt: skip
    """Keep the best candidates as live hypotheses; return the best log p and all parents."""
    w, k = tl.arange(0, WP), tl.arange(0, KP)
    row = slot * W + w
    live = tl.full((WP,), float("-inf"), tl.float32)
    live_parent = tl.zeros((WP,), tl.int32)
    live_token = tl.zeros((WP,), tl.int32)
    for rank in tl.static_range(W):
        found, at = tl.max(going, 0, return_indices=True)
        is_it, mine = k == at, w == rank
        going = tl.where(is_it, float("-inf"), going)
        live = tl.where(mine, found, live)
        live_parent = tl.where(mine, _only(is_it, parent), live_parent)
        live_token = tl.where(mine, _only(is_it, new), live_token)
    tl.store(log_p + row, live, w < W)
    tl.store(token + row, live_token, w < W)
    step = (slot.to(tl.int64) * n_positions + here) * W + w
    tl.store(parents + step, live_parent.to(tl.uint8), w < W)
    tl.store(tokens + step, live_token, w < W)
    return tl.max(live, 0), live_parent


@triton.jit
def _inherit(
    before, after, live_parent, here, slot, n_positions,
    W: tl.constexpr, WP: tl.constexpr, POSITIONS: tl.constexpr,
):  # fmt: skip
    """Copy the origins of each row's parent, and add the parent as origin of the last token."""
    w = tl.arange(0, WP)
    row = slot * W + w
    for start in range(0, here + 1, POSITIONS):
        position = start + tl.arange(0, POSITIONS)
        past = (w < W)[:, None] & (position < here)[None, :]
        of = tl.load(
            before + (slot * W + live_parent)[:, None] * n_positions + position[None, :], past, 0
        )
        of = tl.where((position == here)[None, :], live_parent[:, None].to(tl.uint8), of)
        known = (w < W)[:, None] & (position <= here)[None, :]
        tl.store(after + row[:, None] * n_positions + position[None, :], of, known)


@triton.jit
def _only(mask, x):
    """The element of x at which the mask is true."""
    return tl.sum(tl.where(mask, x, 0), 0)
