"""The memory of a running search, and the step that extends all sentences by a token."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from transept.decoding.step import Hypothesis, length_penalty
from transept.engines.fused.network import DeviceDecoder, Sizes
from transept.engines.kernels.beams import DeviceBeams, advance
from transept.engines.kernels.logits import SpecialIds
from transept.shapes import Float, Int, Tensor


@dataclasses.dataclass(frozen=True, slots=True)
class EncodedInput:
    """An `Input` after the encoder."""

    states: Float[Tensor, "N D"]
    """The encoder's states of all sentences that were encoded together."""
    start: int
    """Index of this sentence's first state."""
    end: int
    """Index after this sentence's last state."""
    max_length: int
    """Maximum output length in tokens, end symbol included."""


@dataclasses.dataclass(frozen=True, slots=True)
class Arena:
    """Memory shared by several workspaces, of which only one is used at a time."""

    numbers: Float[Tensor, " numbers"]
    """Memory of the caches."""
    graph_pool: Any
    """Memory of the intermediate results of a step."""

    @classmethod
    def of(cls, size: int, decoder: DeviceDecoder) -> "Arena":
        """Memory for `size` elements of the decoder's type."""
        pool = torch.cuda.graph_pool_handle() if decoder.device.type == "cuda" else None
        return cls(torch.empty(size, dtype=decoder.dtype, device=decoder.device), pool)


class Workspace:
    """Slots with one sentence each. A step for the first n slots is one CUDA graph."""

    def __init__(self, decoder: DeviceDecoder, arena: Arena, sizes: Sizes, eos_id: int) -> None:
        self.sizes, self.alpha = sizes, 0.0
        self._symbols = SpecialIds(decoder.config.vocab_size, decoder.config.pad_id, eos_id)
        self._decoder = decoder
        self._caches = decoder.caches(arena.numbers, sizes)
        self._graph_pool = arena.graph_pool
        no_penalty = torch.ones(sizes.positions + 1, device=decoder.device)
        self._beams = DeviceBeams.empty(sizes.slots, sizes.width, no_penalty)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def set_length_penalty(self, alpha: float) -> None:
        """Set α of the length penalty.

        The penalties change in place, because the CUDA graphs store their address.
        """
        if alpha != self.alpha:
            self.alpha = alpha
            penalties = [
                length_penalty(length, alpha) for length in range(self.sizes.positions + 1)
            ]
            self._beams.penalties.copy_(torch.tensor(penalties))

    # --- steps -------------------------------------------------------------------------------

    def advance(self, n_slots: int, n_steps: int) -> None:
        """Extend the sentences of the first slots by `n_steps` tokens, or to their ends."""
        if self._decoder.device.type != "cuda":
            for _ in range(n_steps):
                self._step(n_slots)
            return
        graph = self._graphs.get(n_slots) or self._capture(n_slots)
        for _ in range(n_steps):
            graph.replay()

    def _step(self, n_slots: int) -> None:
        beams, caches = self._beams.first(n_slots), self._caches.first(n_slots)
        logits = self._decoder.write(beams, caches)
        advance(beams, logits, self._symbols)

    def _capture(self, n_slots: int) -> torch.cuda.CUDAGraph:
        # Kernels are compiled at their first run, which must not happen during a capture. So first
        # run a step with all sentences marked as done, which leaves them unchanged.
        done = self._beams.done.clone()
        self._beams.done.fill_(1)
        self._step(n_slots)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._graph_pool, capture_error_mode="thread_local"):
            self._step(n_slots)
        self._beams.done.copy_(done)
        self._graphs[n_slots] = graph
        return graph

    def done(self, n_slots: int) -> list[int]:
        """The slots among the first that are done or free. Makes the host wait for the device."""
        return [slot for slot, done in enumerate(self._beams.done[:n_slots].tolist()) if done]

    # --- sentences ---------------------------------------------------------------------------

    def admit(self, slots: Sequence[int], sentences: Sequence[EncodedInput]) -> None:
        """Assign sentences to these slots, which must be free."""
        device, capacity = self._decoder.device, self.sizes.source
        lengths = [one.end - one.start for one in sentences]
        longest = [one.max_length for one in sentences]
        rows = [
            row
            for slot, length in zip(slots, lengths, strict=True)
            for row in range(slot * capacity, slot * capacity + length)
        ]
        self._decoder.read(_states(sentences), torch.tensor(rows).to(device), self._caches)
        at, n_source, max_lengths = torch.tensor([slots, lengths, longest]).to(device)
        self._caches.source_length[at] = n_source.int()
        self._beams.begin(at, max_lengths, self._decoder.start_id)

    def move(self, old: Sequence[int], new: Sequence[int]) -> None:
        """Move sentences to other slots, which must be free."""
        device = self._decoder.device
        here, there = torch.tensor(old, device=device), torch.tensor(new, device=device)
        for part in (*self._beams.by_slot(), *self._caches.by_slot()):
            part[there] = part[here]
        self._beams.done[here] = 1

    def traces(self, slots: Sequence[int]) -> "Traces":
        """Copy the hypotheses of finished sentences to the host, which frees their slots."""
        return Traces.of(self._beams, slots)


@dataclasses.dataclass(frozen=True, slots=True)
class Traces:
    """The hypotheses of finished sentences and their back pointers, on the host.

    The fields correspond to those of `DeviceBeams`.
    """

    length: Int[Tensor, " B"]
    log_p: Float[Tensor, "B W"]
    finished_score: Float[Tensor, "B W"]
    finished_log_p: Float[Tensor, "B W"]
    finished_length: Int[Tensor, "B W"]
    finished_parent: Int[Tensor, "B W"]
    parents: Int[Tensor, "B L W"]
    tokens: Int[Tensor, "B L W"]

    @classmethod
    def of(cls, beams: DeviceBeams, slots: Sequence[int]) -> "Traces":
        """The sentences in these slots."""
        at = torch.tensor(slots, device=beams.done.device)
        parts = [getattr(beams, field.name)[at] for field in dataclasses.fields(cls)]
        return cls(*(part.cpu() for part in parts))

    def outputs(self, alpha: float, n_best: int) -> list[list[Hypothesis]]:
        """The best finished hypotheses of each sentence, or the live ones if none finished in time.

        So the outputs of a sentence are either all finished or all live.
        """
        finished = self.finished_score[:, :1] > -torch.inf
        penalties = [length_penalty(length, alpha) for length in self.length.tolist()]
        live_score = self.log_p / torch.tensor(penalties)[:, None]
        rows = torch.arange(self.log_p.shape[1])
        score = torch.where(finished, self.finished_score, live_score)[:, :n_best]
        log_p = torch.where(finished, self.finished_log_p, self.log_p)[:, :n_best]
        length = torch.where(finished, self.finished_length, self.length[:, None])[:, :n_best]
        row = torch.where(finished, self.finished_parent, rows)[:, :n_best]
        ids = self._traced(length, row)
        each = zip(
            ids.tolist(), length.tolist(), log_p.tolist(), score.tolist(), finished.tolist(),
            strict=True,
        )  # fmt: skip
        return [
            [
                Hypothesis(tuple(tokens[:n]), of_log_p, of_score, is_finished)
                for tokens, n, of_log_p, of_score in zip(*parts, strict=True)
                if of_score > -math.inf
            ]
            for *parts, (is_finished,) in each
        ]

    def _traced(self, length: Int[Tensor, "B K"], row: Int[Tensor, "B K"]) -> Int[Tensor, "B K T"]:
        """The tokens of hypotheses, traced back from the last to the first."""
        sentence = torch.arange(len(length))[:, None]
        ids = torch.zeros(*length.shape, int(length.max()), dtype=torch.int64)
        for position in range(ids.shape[2] - 1, -1, -1):
            at = (sentence, position, row)
            ids[:, :, position] = self.tokens[at]
            row = torch.where(position < length, self.parents[at].long(), row)
        return ids


def _states(sentences: Sequence[EncodedInput]) -> Float[Tensor, "N D"]:
    """The concatenated states of these sentences.

    Sentences that were encoded together are copied as one block.
    """
    runs = [list(run) for _, run in itertools.groupby(sentences, key=lambda one: id(one.states))]
    return torch.cat([run[0].states[run[0].start : run[-1].end] for run in runs])
