"""Beam search entirely on the device. When a sentence is done, the next one takes its slot."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, count, islice, repeat

import torch

from transept.decoding.config import SearchConfig
from transept.decoding.engine import Feed, Found, Input, search_with_fallback
from transept.decoding.step import Hypothesis
from transept.engines.fused.network import (
    DecodingWeights,
    DeviceDecoder,
    DeviceEncoder,
    Sizes,
    capacity,
)
from transept.engines.fused.workspace import Arena, EncodedInput, Traces, Workspace
from transept.engines.kernels import LONGEST
from transept.engines.native.engine import NativeEngine
from transept.model.transformer import Transformer
from transept.progress import Tally, Watch, no_progress
from transept.text.tokenizer import EOS_ID

DTYPE = torch.float16
"""The type of matrix products. It has three more mantissa bits than bfloat16, so it resolves near
ties better. Values in a post-norm network stay far below its maximum."""
MAX_WIDTH = 8
"""Maximum beam size. One warp handles the candidates of a sentence, which limits their number."""
SLOTS = 256
"""Maximum number of sentences at once. More make a GPU hardly faster."""
CACHE_BYTES = 1 << 30
"""Maximum memory for keys and values of outputs. It limits the number of long sentences at once."""
ENCODED_TOKENS = 1 << 14
"""Maximum number of source tokens that are encoded together, even if fewer slots are free."""
CHECK_EVERY = 8
"""The host checks which sentences are done after this many tokens; for a single sentence, after
half as many."""
MIN_POSITIONS, MIN_SOURCE = 128, 64
"""Minimum capacity of a slot, in tokens of an output and of a source."""


class FusedEngine:
    """Runs the whole search on the GPU in half precision, with scores in single precision."""

    name = "fused"
    note, faster = "", None

    def __init__(self, model: Transformer, fallback: NativeEngine) -> None:
        """Search with a model on a GPU.

        Args:
            model: The network. The engine uses a copy of it in half precision.
            fallback: Handles the searches that this engine does not support.
        """
        self._search, self.native = FusedSearch(model, DTYPE, EOS_ID), fallback

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1)."""
        if config.beam_size > MAX_WIDTH:
            return self.native.search(inputs, config, watch)
        other = self.native.search
        return search_with_fallback(self._search, other, is_supported, inputs, config, watch)

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that arrive while the search is running."""
        if config.beam_size > MAX_WIDTH:
            yield from self.native.search_feed(feed, config)
            return
        queue = AdmissionQueue(feed)
        while first := queue.first():
            n_before = queue.n_admitted
            if not is_supported(first):
                others = queue.admit(SLOTS, lambda one: not is_supported(one))
                found = self.native.search(others, config, lambda done, total: queue.poll())
                yield [*enumerate(found, n_before)]
                continue
            for done in self._search.search_queue(queue, config):
                yield [(n_before + number, outputs) for number, outputs in done]


def is_supported(one: Input) -> bool:
    """Whether this search supports a sentence: no prefix, nothing required, not too long."""
    return not (one.prefix or one.required or one.n_positions >= LONGEST)


class AdmissionQueue:
    """Admits the sentences of a feed in order: if one does not fit, all later ones wait."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._waiting: deque[Input] = deque()
        self.n_admitted = 0

    def first(self) -> Input | None:
        """The sentence that is admitted next; None if none is waiting."""
        if not self._waiting:
            self._waiting.extend(self._feed(1))
        return self._waiting[0] if self._waiting else None

    def poll(self) -> None:
        """Request no sentence, so that the feed can raise an exception to stop the search."""
        self._feed(0)

    def admit(self, n: int, fits: Callable[[Input], bool]) -> list[Input]:
        """Remove at most n sentences from the queue, up to the first that does not fit."""
        self._waiting.extend(self._feed(max(0, n - len(self._waiting))))
        admitted: list[Input] = []
        while self._waiting and len(admitted) < n and fits(self._waiting[0]):
            admitted.append(self._waiting.popleft())
        self.n_admitted += len(admitted)
        return admitted


Admit = Callable[[int], Sequence[EncodedInput]]
"""Returns at most n sentences, possibly none."""


class FusedSearch:
    """A search that runs on the device. The host only inserts sentences and reads results."""

    def __init__(self, model: Transformer, dtype: torch.dtype, eos_id: int) -> None:
        weights = DecodingWeights(model, dtype)
        self._encoder, self._decoder = DeviceEncoder(weights), DeviceDecoder(weights)
        self._eos_id = eos_id
        self._arena = Arena.of(0, self._decoder)
        self._workspaces: dict[Sizes, Workspace] = {}

    @torch.inference_mode()
    def __call__(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch = no_progress
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first.

        Args:
            inputs: The sentences; all of them are supported.
            config: Beam size, length penalty, number of outputs.
            watch: Called every few tokens with the number of finished sentences and the total. It
                may raise an exception to stop the search.
        """
        assert all(map(is_supported, inputs))
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        tally = Tally(watch, len(inputs))
        for group, positions in _groups(inputs):
            group.sort(key=lambda index: -len(inputs[index].source))
            some = [inputs[index] for index in group]
            workspace = self._workspace(len(some), positions, len(some[0].source), config)
            for done in _run(workspace, _in_order(self._encoded(some)), config.n_best):
                for number, outputs in done:
                    found[group[number]] = outputs
                tally.add(len(done))
        return found

    @torch.inference_mode()
    def search_queue(self, queue: AdmissionQueue, config: SearchConfig) -> Iterator[Found]:
        """Search for the sentences of a queue, including those that arrive during the search.

        The first sentence sets the capacity of each slot. When a sentence that needs more arrives,
        no more sentences are admitted, and the search ends when the slots are done.
        """
        first = queue.first()
        assert first is not None
        positions = capacity(first.n_positions, MIN_POSITIONS)
        workspace = self._workspace(SLOTS, positions, positions, config)

        def fits(one: Input) -> bool:
            return is_supported(one) and one.n_positions <= positions

        def admit(n: int) -> list[EncodedInput]:
            return list(self._encoded(queue.admit(n, fits)))

        yield from filter(None, _run(workspace, admit, config.n_best))

    def _workspace(
        self, n_sentences: int, positions: int, longest: int, config: SearchConfig
    ) -> Workspace:
        """A workspace for such sentences: an existing one of the same sizes, or a new one."""
        model = self._decoder.config
        row = positions * model.decoder_depth * 2 * model.d_model * self._decoder.dtype.itemsize
        most = max(1, min(SLOTS, CACHE_BYTES // (row * config.beam_size)))
        slots = min(capacity(n_sentences, 1), most)
        sizes = Sizes(slots, config.beam_size, positions, capacity(longest, MIN_SOURCE))
        n_cached = self._decoder.n_cached(sizes)
        if n_cached > len(self._arena.numbers):
            # Graphs store addresses of the old memory, so they are deleted. It is freed first.
            self._workspaces.clear()
            self._arena = Arena.of(0, self._decoder)
            self._arena = Arena.of(n_cached, self._decoder)
        if sizes not in self._workspaces:
            self._workspaces[sizes] = Workspace(self._decoder, self._arena, sizes, self._eos_id)
        self._workspaces[sizes].set_length_penalty(config.length_penalty)
        return self._workspaces[sizes]

    def _encoded(self, inputs: Sequence[Input]) -> Iterator[EncodedInput]:
        """The sentences in order, encoded in batches of at most ENCODED_TOKENS tokens."""
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
            yield from map(EncodedInput, repeat(states), [0, *ends], ends, max_lengths)
            start = end


def _in_order(sentences: Iterator[EncodedInput]) -> Admit:
    return lambda n: list(islice(sentences, n))


def _run(workspace: Workspace, admit: Admit, n_best: int) -> Iterator[Found]:
    """Decode the admitted sentences until all are done and no more arrive.

    Each check yields the sentences that the previous check found done, possibly none.
    """
    slots, numbers = Slots(workspace.sizes.slots), count()
    done: tuple[list[int], Traces] | None = None
    while True:
        free = slots.free()
        if admitted := admit(len(free)):
            taken = free[: len(admitted)]
            workspace.admit(taken, admitted)
            slots.fill(zip(taken, numbers, (one.max_length for one in admitted), strict=False))
        elif moves := slots.compact():
            workspace.move(*zip(*moves, strict=True))
        n_steps = slots.advance()
        if n_steps:
            workspace.advance(slots.n_active, n_steps)
        # The device computes these steps while the host traces the previous outputs.
        if done is None:
            yield []
        else:
            which, traces = done
            yield list(zip(which, traces.outputs(workspace.alpha, n_best), strict=True))
        if not n_steps:
            return
        ended = [slot for slot in workspace.done(slots.n_active) if slot in slots]
        done = (slots.release(ended), workspace.traces(ended)) if ended else None


class Slots:
    """Which sentence is in which slot, and how many slots a step computes."""

    def __init__(self, n_slots: int) -> None:
        self._sizes = [n_slots]
        """The numbers of slots that a step may compute, ascending. Each has a CUDA graph."""
        while self._sizes[0] >= 4:
            self._sizes.insert(0, self._sizes[0] // 4)
        self.n_active = self._sizes[0]
        """The number of slots that the next step computes, from the first."""
        self._number: dict[int, int] = {}
        """The number of the sentence in each occupied slot."""
        self._left: dict[int, int] = {}
        """The remaining tokens of each of these sentences, at most."""

    def __contains__(self, slot: int) -> bool:
        return slot in self._number

    def free(self) -> list[int]:
        """The free slots, in order."""
        return [slot for slot in range(self._sizes[-1]) if slot not in self._number]

    def fill(self, sentences: Iterable[tuple[int, int, int]]) -> None:
        """Assign sentences to free slots, given slot, number and maximum length of each."""
        for slot, number, max_length in sentences:
            self._number[slot], self._left[slot] = number, max_length
        self.n_active = max(self.n_active, self._least(1 + max(self._number)))

    def release(self, slots: Sequence[int]) -> list[int]:
        """Free these slots and return the numbers of their sentences."""
        for slot in slots:
            del self._left[slot]
        return [self._number.pop(slot) for slot in slots]

    def advance(self) -> int:
        """Return the number of steps until the next check, and count them; 0 if all slots are free.

        It does not exceed the remaining tokens of the longest sentence.
        """
        check = CHECK_EVERY if len(self._left) > 1 else CHECK_EVERY // 2
        n_steps = min(check, max(self._left.values(), default=0))
        for slot in self._left:
            self._left[slot] -= n_steps
        return n_steps

    def compact(self) -> list[tuple[int, int]]:
        """Move the last sentences to the first slots, so that a step computes fewer slots.

        Returns the old and the new slot of each sentence that moves.
        """
        self.n_active = self._least(len(self._number))
        behind = sorted(slot for slot in self._number if slot >= self.n_active)
        moves = list(zip(behind, self.free(), strict=False))
        for old, new in moves:
            self._number[new], self._left[new] = self._number.pop(old), self._left.pop(old)
        return moves

    def _least(self, n: int) -> int:
        """The smallest number of slots that a step may compute and that is at least n."""
        return next(size for size in self._sizes if size >= n)


def _groups(inputs: Sequence[Input]) -> Iterator[tuple[list[int], int]]:
    """Indices of sentences whose outputs need the same capacity, and that capacity, descending."""
    groups: dict[int, list[int]] = {}
    for index, one in enumerate(inputs):
        groups.setdefault(capacity(one.max_length, MIN_POSITIONS), []).append(index)
    for positions in sorted(groups, reverse=True):
        yield groups[positions], positions
