"""Our own engine: the networks, and the paper's search over them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch

from transept.api.engines.engine import Done, Feed, Found, Input, Told, search_in_turn
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
    """Batches of similar length; on a CPU as many at once as there are cores."""

    name = "native"

    def __init__(
        self, networks: Networks, shortlist: Shortlist | None = None, note: str = ""
    ) -> None:
        """Take networks; with a shortlist, each batch writes only what its sources may lead to."""
        self.networks, self._shortlist, self.note = networks, shortlist, note

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1)."""
        told = Told(watch)

        @torch.inference_mode()
        def decode(batch: list[int]) -> list[list[Hypothesis]]:
            some = [inputs[index] for index in batch]
            step = self._step(some, self._shortlist)
            states = search_states(step, _max_lengths(some), config, EOS_ID)
            outputs = results(_watched(states, told), len(batch))
            told.done(len(batch))
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
        """`search` for sentences that come while others are under way: they wait for their end."""
        return search_in_turn(self, feed, config)

    @torch.inference_mode()
    def stream(self, one: Input, config: SearchConfig) -> Iterator[Partial]:
        """`search` for one sentence, telling after each token what is known."""
        n_threads = self.networks.threads
        with threads_inside(n_threads):
            step = self._step([one], self._shortlist)
        partials = stream(step, one.max_length, config, EOS_ID)
        while True:
            # Not around the yield: who reads may compute with all threads in between.
            with threads_inside(n_threads):
                partial = next(partials, None)
            if partial is None:
                return
            yield partial

    @torch.inference_mode()
    def draw(
        self, inputs: Sequence[Input], sampling: SamplingConfig, n: int, watch: Done
    ) -> list[list[Hypothesis]]:
        """So many outputs for each sentence, drawn at random from all tokens, listed or not.

        Like sentences draw alike.
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


def _watched(states: Iterable[State], told: Told) -> Iterator[State]:
    """The states of a search: a watcher that raises ends it."""
    for state in states:
        told.done(0)
        yield state
