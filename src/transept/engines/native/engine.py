"""The native engine: networks in PyTorch, and the paper's beam search."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import TypeVar

import torch

from transept.decoding.beam import SearchObserver, search_states, stream
from transept.decoding.config import SamplingConfig, SearchConfig
from transept.decoding.engine import (
    TOKENS_AT_ONCE,
    Constrain,
    Drafts,
    Feed,
    Found,
    Input,
    batches_by_length,
    dealt,
    search_sequentially,
)
from transept.decoding.greedy import sample, sample_seed
from transept.decoding.step import (
    Constrained,
    Ensemble,
    ForcedPrefix,
    Hypothesis,
    Partial,
    State,
    Step,
    results,
)
from transept.decoding.terms import term_states, width_of
from transept.engines.native.calibration import IntegerPlan, calibrated
from transept.engines.native.network import IncrementalDecoder, encode
from transept.engines.shortlist import Shortlist
from transept.model.packing import pad_rows
from transept.model.transformer import Transformer
from transept.progress import Tally, Watch
from transept.text.tokenizer import EOS_ID

MULTITHREADED = 1 << 19
"""A product of a few rows with a matrix of fewer elements than this runs on one thread. A second
thread would save a tenth of the time on an idle machine, but take three times as long on a busy
one, where one thread waits until the other is scheduled."""


class NativeEngine:
    """Searches in batches of sentences of similar length; on a CPU, one batch per core."""

    def __init__(
        self,
        models: Sequence[Transformer],
        shortlist: Shortlist | None = None,
        *,
        int8: bool = False,
        note: str = "",
        faster: str | None = None,
    ) -> None:
        """Search with these networks.

        Args:
            models: One network, or an ensemble, whose probabilities are averaged.
            shortlist: If given, `search` and `stream` choose only among the target tokens that it
                lists for the source tokens of a batch.
            int8: Whether to multiply in 8-bit integers where that is faster on this machine.
            note: A warning for the user; see `Engine.note`.
            faster: The name of a faster engine; see `Engine.faster`.
        """
        self._models = [model.eval() for model in models]
        self._device = models[0].projection.weight.device
        self._shortlist, self.note, self.faster = shortlist, note, faster
        self.name = "native-int8" if int8 else "native"
        self._plans: Sequence[IntegerPlan | None] = [None] * len(models)
        if int8:
            with torch_threads(1):
                self._plans = [calibrated(model) for model in models]

    @property
    def native(self) -> "NativeEngine":
        """This engine."""
        return self

    @property
    def threads(self) -> int:
        """The number of CPU threads that share the matrix products of one batch."""
        widest = max(model.config.d_model * model.config.d_ff for model in self._models)
        return 1 if widest < MULTITHREADED else torch.get_num_threads()

    def search(
        self,
        inputs: Sequence[Input],
        config: SearchConfig,
        watch: Watch,
        constrain: Constrain | None = None,
        drafts: Drafts | None = None,
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1).

        With a constraint, the shortlist is not used.
        """
        tally = Tally(watch, len(inputs))

        @torch.inference_mode()
        def decode(batch: list[int]) -> list[list[Hypothesis]]:
            some = [inputs[index] for index in batch]
            if constrain is None:
                step = self._step(some, self._shortlist)
            else:
                step = Constrained(self._step(some), constrain(batch))
            states = _watched(_states(step, some, config), tally)
            if drafts is not None:
                states = _drafted(states, batch, drafts)
            outputs = results(states, len(batch))
            tally.add(len(batch))
            return outputs

        n_threads = cores(self._device)
        batches = [
            [group[number] for number in batch]
            for rows, group in _groups(inputs, config)
            for batch in self._batches([inputs[index] for index in group], rows, n_threads)
        ]
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        done = map_parallel(decode, batches, n_threads, self.threads)
        for batch, outputs in zip(batches, done, strict=True):
            for index, each in zip(batch, outputs, strict=True):
                found[index] = each
        return found

    def search_feed(
        self, feed: Feed, config: SearchConfig, drafts: Drafts | None = None
    ) -> Iterator[Found]:
        """`search` for sentences that arrive while a batch runs; they wait until it ends."""

        def search(
            first: int, inputs: Sequence[Input], config: SearchConfig, watch: Watch
        ) -> list[list[Hypothesis]]:
            numbered = drafts and (lambda index, partial: drafts(first + index, partial))
            return self.search(inputs, config, watch, drafts=numbered)

        return search_sequentially(search, feed, config)

    @torch.inference_mode()
    def stream(
        self, one: Input, config: SearchConfig, observer: SearchObserver | None = None
    ) -> Iterator[Partial]:
        """`search` for one sentence; yield the partial output after each token."""
        n_threads = self.threads
        with torch_threads(n_threads):
            step = self._step([one], self._shortlist)
        drafts = stream(_states(step, [one], config, observer))
        while True:
            # Not around the yield: the caller may compute in between and needs all threads.
            with torch_threads(n_threads):
                draft = next(drafts, None)
            if draft is None:
                return
            yield draft

    @torch.inference_mode()
    def sample(
        self, inputs: Sequence[Input], sampling: SamplingConfig, n: int, watch: Watch
    ) -> list[list[Hypothesis]]:
        """Sample n outputs per sentence, without a shortlist.

        The same seed gives the same samples of a sentence, in any batch.
        """
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        tally = Tally(watch, len(inputs))
        for batch in self._batches(inputs, rows=n):
            some = [inputs[index] for index in batch]
            rows = [one for one in some for _ in range(n)]
            seeds = [sample_seed(sampling.seed, one.source, k) for one in some for k in range(n)]
            samples = iter(sample(self._step(rows), _max_lengths(rows), seeds, sampling, EOS_ID))
            for index in batch:
                found[index] = [*islice(samples, n)]
            tally.add(len(batch))
        return found

    def _step(self, inputs: Sequence[Input], shortlist: Shortlist | None = None) -> Step:
        """The step of a search: one row per input, whose output starts with its prefix.

        With a shortlist, only its tokens for these sources and the tokens of prefixes and required
        sequences are allowed.
        """
        sources, prefixes = [one.source for one in inputs], [one.prefix for one in inputs]
        source_ids = pad_rows(sources, self._models[0].config.pad_id).to(self._device)
        tokens = None
        if shortlist is not None:
            required = chain.from_iterable(one.required for one in inputs)
            known = [*chain.from_iterable([*prefixes, *required])]
            given = torch.tensor(known, dtype=torch.long)
            tokens = shortlist.tokens(source_ids.cpu(), given).to(self._device)
        steps = [
            IncrementalDecoder(model, encode(model, source_ids, plan), tokens, plan)
            for model, plan in zip(self._models, self._plans, strict=True)
        ]
        step: Step = Ensemble(steps) if len(steps) > 1 else steps[0]
        if any(prefixes):
            after = [one.spelling.after for one in inputs]
            vocab_size = self._models[0].config.vocab_size
            step = Constrained(step, ForcedPrefix(prefixes, vocab_size, after=after))
        return step

    def _batches(self, inputs: Sequence[Input], rows: int, n_threads: int = 1) -> list[list[int]]:
        """Batches of sentences of similar length, `n_threads` of which take about the same time."""
        lengths = [len(one.source) for one in inputs]
        most = max(1, TOKENS_AT_ONCE[self._device.type] // rows)
        return [*dealt(batches_by_length(lengths, n_threads * most), n_threads)]


def _max_lengths(inputs: Sequence[Input]) -> list[int]:
    return [one.max_length for one in inputs]


def _groups(inputs: Sequence[Input], config: SearchConfig) -> list[tuple[int, list[int]]]:
    """Indices of inputs for the same kind of search, with the number of rows of each sentence."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for index, one in enumerate(inputs):
        rows = width_of(one, config) if one.required else config.beam_size
        groups.setdefault((bool(one.required), rows), []).append(index)
    return [(rows, group) for (_, rows), group in groups.items()]


def _states(
    step: Step,
    inputs: Sequence[Input],
    config: SearchConfig,
    observer: SearchObserver | None = None,
) -> Iterator[State]:
    """The states of a search for inputs of one group."""
    if inputs[0].required:
        return term_states(step, inputs, config, EOS_ID)
    return search_states(step, _max_lengths(inputs), config, EOS_ID, observer)


def _watched(states: Iterable[State], tally: Tally) -> Iterator[State]:
    """The states of a search. Calls the watcher at each, so that it can raise an exception."""
    for state in states:
        tally.add(0)
        yield state


def _drafted(states: Iterable[State], batch: Sequence[int], drafts: Drafts) -> Iterator[State]:
    """The states of a search. Reports each sentence of the batch that is not done."""
    for state in states:
        for row, number in enumerate(state.sentence):
            if not state.done[row]:
                drafts(batch[number], partial(state.partial, row))
        yield state


Item = TypeVar("Item")
Result = TypeVar("Result")


def cores(device: torch.device) -> int:
    """How many batches to compute at once: the number of torch's threads on a CPU, else 1."""
    return torch.get_num_threads() if device.type == "cpu" else 1


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Run each operation of torch on this many threads."""
    before = torch.get_num_threads()
    if number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], n_threads: int, inside: int
) -> list[Result]:
    """Call `work` for each item, `n_threads` items at once, each in a single thread.

    Matrices of a few rows are too small for several threads: synchronizing takes longer than the
    product, and much longer on a busy machine. If only one item runs at a time, it uses `inside`
    threads.
    """
    if min(n_threads, len(items)) < 2:
        with torch_threads(inside):
            return [work(item) for item in items]
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)
        # New threads would otherwise start with the number that the pool has set.
        torch.set_num_threads(before)
