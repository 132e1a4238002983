"""Our own engine: the networks, and the paper's search over them."""

from collections.abc import Iterable, Iterator, Sequence

import torch

from transept.api.engines.engine import Done, Ids, Told
from transept.api.networks import Networks
from transept.decoding.beam import search_states
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis, Partial, State, results
from transept.decoding.sampling import SamplingConfig, sample, seed_of_draw
from transept.decoding.shortlist import Shortlist
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
        self,
        sources: Sequence[Ids],
        prefixes: Sequence[Ids],
        max_lengths: Sequence[int],
        config: SearchConfig,
        watch: Done,
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1)."""
        told = Told(watch)

        @torch.inference_mode()
        def decode(batch: list[int]) -> list[list[Hypothesis]]:
            step = self.networks.step(
                [sources[i] for i in batch], [prefixes[i] for i in batch], self._shortlist
            )
            states = search_states(step, [max_lengths[i] for i in batch], config, EOS_ID)
            outputs = results(_watched(states, told), len(batch))
            told.done(len(batch))
            return outputs

        n_threads = cores(self.networks.device)
        lengths = [*map(len, sources)]
        batches = [*self.networks.batches(lengths, config.beam_size, at_least=n_threads)]
        found: list[list[Hypothesis]] = [[] for _ in sources]
        done = side_by_side(decode, batches, n_threads, self.networks.threads)
        for batch, outputs in zip(batches, done, strict=True):
            for index, each in zip(batch, outputs, strict=True):
                found[index] = each
        return found

    @torch.inference_mode()
    def stream(
        self, source: Ids, prefix: Ids, max_length: int, config: SearchConfig
    ) -> Iterator[Partial]:
        """`search` for one sentence, telling after each token what is known."""
        n_threads = self.networks.threads
        with threads_inside(n_threads):
            step = self.networks.step([source], [prefix], self._shortlist)
        partials = stream(step, max_length, config, EOS_ID)
        while True:
            # Not around the yield: who reads may compute with all threads in between.
            with threads_inside(n_threads):
                partial = next(partials, None)
            if partial is None:
                return
            yield partial

    @torch.inference_mode()
    def draw(
        self,
        sources: Sequence[Ids],
        prefixes: Sequence[Ids],
        max_lengths: Sequence[int],
        sampling: SamplingConfig,
        n: int,
        watch: Done,
    ) -> list[list[Hypothesis]]:
        """So many outputs for each sentence, drawn at random from all tokens, listed or not.

        Like sentences draw alike.
        """
        found: list[list[Hypothesis]] = [[] for _ in sources]
        done = 0
        for batch in self.networks.batches([*map(len, sources)], rows=n):
            rows = [index for index in batch for _ in range(n)]
            step = self.networks.step([sources[i] for i in rows], [prefixes[i] for i in rows])
            seeds = [seed_of_draw(sampling.seed, sources[i], k) for i in batch for k in range(n)]
            drawn = sample(step, [max_lengths[i] for i in rows], seeds, sampling, EOS_ID)
            for row, output in zip(rows, drawn, strict=True):
                found[row].append(output)
            done += len(batch)
            watch(done)
        return found


def _watched(states: Iterable[State], told: Told) -> Iterator[State]:
    """The states of a search: a watcher that raises ends it."""
    for state in states:
        told.done(0)
        yield state
