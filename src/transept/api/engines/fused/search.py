"""Beam search with all of it on the device, and a new sentence wherever one is done."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, count, islice, repeat

import torch

from transept.api.engines.engine import Done, Found, Input, nobody
from transept.api.engines.fused.decoder import DeviceDecoder
from transept.api.engines.fused.door import Door
from transept.api.engines.fused.encoder import DeviceEncoder
from transept.api.engines.fused.sizes import Sizes, room
from transept.api.engines.fused.weights import Weights
from transept.api.engines.fused.workspace import Arena, Entrant, Traces, Workspace
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis
from transept.kernels import LONGEST
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

Enter = Callable[[int], Sequence[Entrant]]
"""Gives the next sentences, at most so many; none where none waits now."""


def is_beyond(one: Input) -> bool:
    """Whether a sentence is for another search."""
    return bool(one.prefix) or one.n_positions >= LONGEST


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
            for ended in _run(workspace, _in_order(self._queue(some)), config.n_best):
                for number, outputs in ended:
                    found[group[number]] = outputs
                n_done += len(ended)
                watch(n_done)
        return found

    @torch.inference_mode()
    def follow(self, door: Door, config: SearchConfig) -> Iterator[Found]:
        """Search for who waits at a door, and for who comes to it meanwhile.

        There is room for outputs, and for sources, as long as the first one's may be, and for
        shorter ones. When a longer one comes, it ends with those who are under way.
        """
        first = door.first()
        assert first is not None
        places = room(first.n_positions, LEAST_PLACES)
        workspace = self._workspace(SLOTS, places, places, config)

        def fits(one: Input) -> bool:
            return not is_beyond(one) and one.n_positions <= places

        def enter(n: int) -> list[Entrant]:
            return list(self._queue(door.enter(n, fits)))

        yield from filter(None, _run(workspace, enter, config.n_best))

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


def _in_order(queue: Iterator[Entrant]) -> Enter:
    return lambda n: list(islice(queue, n))


def _run(workspace: Workspace, enter: Enter, n_best: int) -> Iterator[Found]:
    """Decode who enters, until nobody does; after each look, who has ended before it."""
    seats, numbers = Seats(workspace.sizes.slots), count()
    ended: tuple[list[int], Traces] | None = None
    while True:
        free = seats.free()
        if entrants := enter(len(free)):
            slots = free[: len(entrants)]
            workspace.admit(slots, entrants)
            seats.take(zip(slots, numbers, (one.max_length for one in entrants), strict=False))
        elif moved := seats.close_ranks():
            workspace.move(*zip(*moved, strict=True))
        n_steps = seats.advance()
        if n_steps:
            workspace.advance(seats.n_slots, n_steps)
        # While the device goes on, the host puts together what has ended before.
        if ended is None:
            yield []
        else:
            who, traces = ended
            yield list(zip(who, traces.outputs(workspace.alpha, n_best), strict=True))
        if not n_steps:
            return
        done = [slot for slot in workspace.done(seats.n_slots) if slot in seats]
        ended = (seats.leave(done), workspace.take_out(done)) if done else None


class Seats:
    """Who sits in which slot."""

    def __init__(self, n_slots: int) -> None:
        self._sizes = [n_slots]
        """Of which a step may be, the least first: a CUDA graph each."""
        while self._sizes[0] >= 4:
            self._sizes.insert(0, self._sizes[0] // 4)
        self.n_slots = self._sizes[0]
        self._number: dict[int, int] = {}
        self._left: dict[int, int] = {}
        """How many tokens each may still write."""

    def __contains__(self, slot: int) -> bool:
        return slot in self._number

    def free(self) -> list[int]:
        """Slots with nobody in them, the first ones first."""
        return [slot for slot in range(self._sizes[-1]) if slot not in self._number]

    def take(self, sentences: Iterable[tuple[int, int, int]]) -> None:
        """Sentences begin: their slots, numbers, and longest outputs."""
        for slot, number, max_length in sentences:
            self._number[slot], self._left[slot] = number, max_length
        self.n_slots = max(self.n_slots, self._least(1 + max(self._number)))

    def leave(self, slots: Sequence[int]) -> list[int]:
        """The numbers of those who were in these slots."""
        for slot in slots:
            del self._left[slot]
        return [self._number.pop(slot) for slot in slots]

    def advance(self) -> int:
        """How many steps to go before looking who is done: never beyond the last one's end."""
        look = LOOK if len(self._left) > 1 else LOOK // 2
        n_steps = min(look, max(self._left.values(), default=0))
        for slot in self._left:
            self._left[slot] -= n_steps
        return n_steps

    def close_ranks(self) -> list[tuple[int, int]]:
        """Few are left, and nobody waits: they go on in the first slots. Who moves, and where."""
        self.n_slots = self._least(len(self._number))
        behind = sorted(slot for slot in self._number if slot >= self.n_slots)
        moves = list(zip(behind, self.free(), strict=False))
        for old, new in moves:
            self._number[new], self._left[new] = self._number.pop(old), self._left.pop(old)
        return moves

    def _least(self, n: int) -> int:
        """The least size with so many slots."""
        return next(size for size in self._sizes if size >= n)


def _groups(inputs: Sequence[Input]) -> Iterator[tuple[list[int], int]]:
    """Sentences whose outputs need about as much room, and how much, the longest first."""
    rooms: dict[int, list[int]] = {}
    for index, one in enumerate(inputs):
        rooms.setdefault(room(one.max_length, LEAST_PLACES), []).append(index)
    for places in sorted(rooms, reverse=True):
        yield rooms[places], places
