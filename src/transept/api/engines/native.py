"""transept's own engine: the networks in PyTorch, and the paper's search over them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch

from transept.api.engines.engine import Done, DoneCounter, Feed, Found, Input, search_in_turn
from transept.api.networks import Networks
from transept.decoding.beam import search_states
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis, Partial, State, results
from transept.decoding.sampling import SamplingConfig, sample, seed_of_draw
from transept.decoding.shortlist import Shortlist
from transept.decoding.step import Step
from transept.decoding.stream import stream
from transept.runtime.threads import cores, side_by_side, threads_inside
from transept.text.tokenizer import EOS_ID


class NativeEngine:
    """Searches in batches of sentences of similar length; on a CPU, one batch for each core."""

    name = "native"

    def __init__(
        self, networks: Networks, shortlist: Shortlist | None = None, note: str = ""
    ) -> None:
        """Search with these networks.

        Args:
            networks: One network, or several that decide together.
            shortlist: If given, `search` and `stream` choose only among the target tokens that it
                lists for the source tokens of a batch.
            note: What the user should know; see `Engine.note`.
        """
        self.networks, self._shortlist, self.note = networks, shortlist, note

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1)."""
        counter = DoneCounter(watch)

        @torch.inference_mode()
        def decode(batch: list[int]) -> list[list[Hypothesis]]:
            some = [inputs[index] for index in batch]
            step = self._step(some, self._shortlist)
            states = search_states(step, _max_lengths(some), config, EOS_ID)
            outputs = results(_watched(states, counter), len(batch))
            counter.add(len(batch))
            return outputs

        n_threads = cores(self.networks.device)
        lengths = [len(one.source) for one in inputs]
        batches = [*self.networks.batches(lengths, config.beam_size, at_least=n_threads)]
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        done = side_by_side(decode, batches, n_threads, self.networks.threads)
        for batch, outputs in zip(batches, done, strict=True):
            for index, each in zip(batch, outputs, strict=True):
                found[index] = each
        return found

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while a batch runs: they wait until it ends."""
        return search_in_turn(self, feed, config)

    @torch.inference_mode()
    def stream(self, one: Input, config: SearchConfig) -> Iterator[Partial]:
        """`search` for one sentence; yield after each token what is known."""
        n_threads = self.networks.threads
        with threads_inside(n_threads):
            step = self._step([one], self._shortlist)
        partials = stream(step, one.max_length, config, EOS_ID)
        while True:
            # Not around the yield: the reader may compute in between, and needs all its threads.
            with threads_inside(n_threads):
                partial = next(partials, None)
            if partial is None:
                return
            yield partial

    @torch.inference_mode()
    def draw(
        self, inputs: Sequence[Input], sampling: SamplingConfig, n: int, watch: Done
    ) -> list[list[Hypothesis]]:
        """Draw n outputs of each sentence at random. A shortlist is not used.

        The same sentence with the same seed draws the same outputs, whatever else is drawn.
        """
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        done = 0
        for batch in self.networks.batches([len(one.source) for one in inputs], rows=n):
            some = [inputs[index] for index in batch]
            rows = [one for one in some for _ in range(n)]
            seeds = [seed_of_draw(sampling.seed, one.source, k) for one in some for k in range(n)]
            drawn = iter(sample(self._step(rows), _max_lengths(rows), seeds, sampling, EOS_ID))
            for index in batch:
                found[index] = [*islice(drawn, n)]
            done += len(batch)
            watch(done)
        return found

    def _step(self, inputs: Sequence[Input], shortlist: Shortlist | None = None) -> Step:
        sources, prefixes = [one.source for one in inputs], [one.prefix for one in inputs]
        return self.networks.step(sources, prefixes, shortlist)


def _max_lengths(inputs: Sequence[Input]) -> list[int]:
    return [one.max_length for one in inputs]


def _watched(states: Iterable[State], counter: DoneCounter) -> Iterator[State]:
    """The states of a search. At each, the watcher is called, so that it can raise an exception."""
    for state in states:
        counter.add(0)
        yield state
