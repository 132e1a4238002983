"""Beam search with all of it on the device, and a new sentence wherever one is done."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat

import torch

from transept.api.engines.engine import Done, Input, nobody
from transept.api.engines.fused.decoder import DeviceDecoder
from transept.api.engines.fused.encoder import DeviceEncoder
from transept.api.engines.fused.sizes import Sizes, room
from transept.api.engines.fused.weights import Weights
from transept.api.engines.fused.workspace import Arena, Entrant, Traces, Workspace
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis
from transept.model.transformer import Transformer

SLOTS = 256
"""Sentences at once, at most: beyond it, a GPU gains little."""
CACHE_BYTES = 1 << 30
"""Keys and values of outputs take no more: fewer sentences at once, where they are long."""
ENCODED_TOKENS = 1 << 14
"""Source tokens that are encoded together, ahead of when they are needed."""
LOOK = 8
"""The host looks who is done every so many tokens; a sentence alone is looked at more often."""
LEAST_PLACES, LEAST_SOURCE = 128, 64
"""Tokens of an output and of a source for which there is always room."""


class FusedSearch:
    """A model that searches by itself; the host hands in sentences and takes out results."""

    def __init__(self, model: Transformer, dtype: torch.dtype, eos_id: int) -> None:
        weights = Weights(model, dtype)
        self._encoder, self._decoder = DeviceEncoder(weights), DeviceDecoder(weights)
        self._eos_id = eos_id
        self._arena = Arena.of(0, self._decoder)
        self._workspaces: dict[Sizes, Workspace] = {}

    @torch.inference_mode()
    def __call__(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done = nobody
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first.

        Args:
            inputs: The sentences, none with a prefix.
            config: Beam size, length penalty, number of outputs.
            watch: Told how many sentences are done, every few tokens; it may raise to end it.
        """
        assert not any(one.prefix for one in inputs)
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        n_done = 0
        for group, places in _groups(inputs):
            group.sort(key=lambda index: -len(inputs[index].source))
            some = [inputs[index] for index in group]
            workspace = self._workspace(len(some), places, len(some[0].source), config)
            for ended in _run(workspace, self._queue(some), config.n_best):
                for number, outputs in ended:
                    found[group[number]] = outputs
                n_done += len(ended)
                watch(n_done)
        return found

    def _workspace(
        self, n_sentences: int, places: int, longest: int, config: SearchConfig
    ) -> Workspace:
        """The workspace for such sentences; the same again if there was one."""
        model = self._decoder.config
        row = places * model.n_layers * 2 * model.d_model * self._decoder.dtype.itemsize
        most = max(1, min(SLOTS, CACHE_BYTES // (row * config.beam_size)))
        slots = min(room(n_sentences, 1), most)
        sizes = Sizes(slots, config.beam_size, places, room(longest, LEAST_SOURCE))
        n_cached = self._decoder.n_cached(sizes)
        if n_cached > len(self._arena.numbers):
            self._workspaces.clear()  # their graphs know the old memory
            self._arena = Arena.of(0, self._decoder)
            self._arena = Arena.of(n_cached, self._decoder)
        if sizes not in self._workspaces:
            self._workspaces[sizes] = Workspace(self._decoder, self._arena, sizes, self._eos_id)
        self._workspaces[sizes].penalise(config.length_penalty)
        return self._workspaces[sizes]

    def _queue(self, inputs: Sequence[Input]) -> Iterator[Entrant]:
        """The sentences, encoded some at a time."""
        sources = [one.source for one in inputs]
        start = 0
        while start < len(sources):
            end, n_tokens = start, 0
            while end < len(sources) and (
                end == start or n_tokens + len(sources[end]) <= ENCODED_TOKENS
            ):
                n_tokens += len(sources[end])
                end += 1
            states = self._encoder(sources[start:end])
            ends = list(accumulate(map(len, sources[start:end])))
            max_lengths = [one.max_length for one in inputs[start:end]]
            yield from map(Entrant, repeat(states), [0, *ends], ends, max_lengths)
            start = end


def _run(
    workspace: Workspace, queue: Iterator[Entrant], n_best: int
) -> Iterator[list[tuple[int, list[Hypothesis]]]]:
    """Decode a queue; after each look, who has ended before it: their numbers and outputs."""
    seats = Seats(workspace.sizes.slots)
    waiting = enumerate(queue)
    ended: tuple[list[int], Traces] | None = None
    while True:
        entering = list(zip(seats.free(), waiting, strict=False))
        if entering:
            workspace.admit([slot for slot, _ in entering], [one for _, (_, one) in entering])
            seats.take((slot, number, one.max_length) for slot, (number, one) in entering)
        elif moved := seats.close_ranks():
            workspace.move(*zip(*moved, strict=True))
        n_steps = seats.advance()
        if n_steps:
            workspace.advance(seats.n_slots, n_steps)
        # While the device goes on, the host puts together what has ended before.
        if ended is None:
            yield []
        else:
            numbers, traces = ended
            yield list(zip(numbers, traces.outputs(workspace.alpha, n_best), strict=True))
        if not n_steps:
            return
        done = [slot for slot in workspace.done(seats.n_slots) if slot in seats]
        ended = (seats.leave(done), workspace.take_out(done)) if done else None


class Seats:
    """Who sits in which slot."""

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self._number: dict[int, int] = {}
        self._left: dict[int, int] = {}
        """How many tokens each may still write."""

    def __contains__(self, slot: int) -> bool:
        return slot in self._number

    def free(self) -> list[int]:
        """Slots with nobody in them."""
        return [slot for slot in range(self.n_slots) if slot not in self._number]

    def take(self, sentences: Iterable[tuple[int, int, int]]) -> None:
        """Sentences begin: their slots, numbers, and longest outputs."""
        for slot, number, max_length in sentences:
            self._number[slot], self._left[slot] = number, max_length

    def leave(self, slots: Sequence[int]) -> list[int]:
        """The numbers of those who were in these slots."""
        for slot in slots:
            del self._left[slot]
        return [self._number.pop(slot) for slot in slots]

    def advance(self) -> int:
        """How many steps to go before looking who is done: never beyond the last one's end."""
        look = LOOK if self.n_slots > 1 else LOOK // 2
        n_steps = min(look, max(self._left.values(), default=0))
        for slot in self._left:
            self._left[slot] -= n_steps
        return n_steps

    def close_ranks(self) -> list[tuple[int, int]]:
        """Few are left, and nobody waits: they go on in the first slots. Who moves, and where."""
        while self.n_slots > 1 and len(self._number) <= self.n_slots // 4:
            self.n_slots = max(1, self.n_slots // 4)
        behind = sorted(slot for slot in self._number if slot >= self.n_slots)
        moves = list(zip(behind, self.free(), strict=False))
        for old, new in moves:
            self._number[new], self._left[new] = self._number.pop(old), self._left.pop(old)
        return moves


def _groups(inputs: Sequence[Input]) -> Iterator[tuple[list[int], int]]:
    """Sentences whose outputs need about as much room, and how much, the longest first."""
    rooms: dict[int, list[int]] = {}
    for index, one in enumerate(inputs):
        rooms.setdefault(room(one.max_length, LEAST_PLACES), []).append(index)
    for places in sorted(rooms, reverse=True):
        yield rooms[places], places
