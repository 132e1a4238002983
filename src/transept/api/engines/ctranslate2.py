"""The weights in CTranslate2: quick on a CPU with 8-bit integers; its search is another one.

CTranslate2 divides log P by |Y|^α where the paper, after Wu et al., divides by ((5 + |Y|) / 6)^α.
So it is asked for plain log P of as many outputs as the beam is wide, and these are ranked here by
the paper's score. What differs still: an output counts as finished only if its end symbol is among
the W best candidates of a step (here: among 2·W), and the search ends with the W-th finished output
(here: when no live hypothesis can overtake).
"""

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from transept.api.engines.engine import Done, Engine, Feed, Found, Input, search_in_turn
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis
from transept.decoding.length import length_penalty
from transept.export import ctranslate2 as export
from transept.export.ctranslate2 import Names
from transept.model.transformer import Transformer
from transept.text.tokenizer import EOS_ID

Precision = Literal["float32", "int8"]

PLACES = 4096
"""Source tokens, padding too and each as often as the beam is wide, of a batch."""

NOTE = "Its beam search is not quite the paper's"
"""It ends by other rules; outputs are ranked by the paper's score."""


class _Batch(NamedTuple):
    indices: list[int]
    results: list[Any]


class CTranslate2Engine:
    """One network in CTranslate2, on the CPU.

    Forced prefixes, and sentences longer than the table of positions that it was given, are left
    to another engine.
    """

    note = NOTE

    def __init__(
        self,
        model: Transformer,
        names: Names,
        others: Engine,
        precision: Precision = "float32",
        *,
        eos_id: int = EOS_ID,
    ) -> None:
        """Export a network, and load it there.

        Args:
            model: The network.
            names: What its ids are called.
            others: Searches where CTranslate2 does not.
            precision: In which weights and activations are multiplied.
            eos_id: The symbol that ends an output.
        """
        self.name = f"CTranslate2 {precision}"
        self._others = others
        self._source_names = names.source
        self._target_ids = {name: index for index, name in enumerate(names.target)}
        self._eos = names.target[eos_id]
        config = model.config
        learned = config.positions == "learned"
        self._n_positions = config.max_positions if learned else export.N_POSITIONS
        self._threads = torch.get_num_threads()
        self._translator = _load(model, names, precision, self._threads, eos_id)

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first."""
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        left = [
            index
            for index, one in enumerate(inputs)
            if one.prefix or one.n_positions > self._n_positions
        ]
        mine = sorted({*range(len(inputs))}.difference(left), key=lambda i: -len(inputs[i].source))
        done = 0
        for batch in self._results(mine, inputs, config):
            for index, result in zip(batch.indices, batch.results, strict=True):
                found[index] = self._within(result, inputs[index], config)
            done += len(batch.indices)
            watch(done)
        if left:
            outputs = self._others.search(
                [inputs[index] for index in left], config, lambda n_done: watch(done + n_done)
            )
            for index, each in zip(left, outputs, strict=True):
                found[index] = each
        return found

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while others are under way: they wait for their end."""
        return search_in_turn(self, feed, config)

    def _results(
        self, indices: Sequence[int], inputs: Sequence[Input], config: SearchConfig
    ) -> Iterator[_Batch]:
        """Batches as they get done; while one is looked at, others are worked on."""
        waiting: deque[_Batch] = deque()
        for batch in self._batches(indices, inputs, config.beam_size):
            submitted = self._submit([inputs[index] for index in batch], config)
            waiting.append(_Batch(batch, submitted))
            if len(waiting) > self._threads:
                yield _collected(waiting.popleft())
        while waiting:
            yield _collected(waiting.popleft())

    def _batches(
        self, indices: Sequence[int], inputs: Sequence[Input], beam_size: int
    ) -> Iterator[list[int]]:
        """Neighbours, longest first: as many as go through at once, and work for each thread."""
        share = -(-len(indices) // self._threads)
        start = 0
        while start < len(indices):
            width = len(inputs[indices[start]].source)
            n = max(1, min(PLACES // (beam_size * width), share))
            yield list(indices[start : start + n])
            start += n

    def _submit(self, inputs: Sequence[Input], config: SearchConfig) -> list[Any]:
        names = self._source_names
        submitted: list[Any] = self._translator.translate_batch(
            [[names[index] for index in one.source] for one in inputs],
            beam_size=config.beam_size,
            # Without a length penalty, the first that is finished and leads is the best.
            num_hypotheses=config.beam_size if config.length_penalty else config.n_best,
            length_penalty=0,
            min_decoding_length=0,
            max_decoding_length=max(one.max_length for one in inputs),
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
            asynchronous=True,
        )
        return submitted

    def _within(self, result: Any, one: Input, config: SearchConfig) -> list[Hypothesis]:
        """The outputs of a sentence; where its batch let it be too long, it is searched again."""
        if any(len(tokens) > one.max_length for tokens in result.hypotheses):
            (again,) = self._submit([one], config)
            result = again.result()
        ranked = sorted(
            (
                self._hypothesis(tokens, log_p, config.length_penalty)
                for tokens, log_p in zip(result.hypotheses, result.scores, strict=True)
            ),
            key=lambda found: (found.finished, found.score),
            reverse=True,
        )
        return ranked[: config.n_best]

    def _hypothesis(self, tokens: Sequence[str], log_p: float, alpha: float) -> Hypothesis:
        finished = bool(tokens) and tokens[-1] == self._eos
        spoken = tokens[:-1] if finished else tokens
        ids = tuple(map(self._target_ids.__getitem__, spoken))
        return Hypothesis(ids, log_p, log_p / length_penalty(len(tokens), alpha), finished)


def _collected(batch: _Batch) -> _Batch:
    return batch._replace(results=[one.result() for one in batch.results])


def _load(model: Transformer, names: Names, precision: Precision, threads: int, eos_id: int) -> Any:
    """The network there. Its directory is gone as soon as it is read."""
    export.require()
    import ctranslate2

    with tempfile.TemporaryDirectory(prefix="transept-") as directory:
        export.save(model, names, Path(directory), quantization=precision, eos_id=eos_id)
        return ctranslate2.Translator(
            directory, compute_type=precision, inter_threads=threads, intra_threads=1
        )
