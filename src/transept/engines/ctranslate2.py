"""CTranslate2 as an engine: fast on a CPU with 8-bit integers, but with a different beam search.

CTranslate2 divides log P by |Y|^α. The paper, after Wu et al., divides by ((5 + |Y|) / 6)^α. So
this engine requests W outputs with plain log P from CTranslate2 and ranks them by the paper's
score. Two differences remain. CTranslate2 considers an output finished only if its end symbol is
among the W best candidates of a step; transept's own search considers 2·W. And CTranslate2 stops at
the W-th finished output; transept's own search stops when no live hypothesis can overtake the
finished ones.
"""

import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from transept.decoding.config import SearchConfig
from transept.decoding.engine import (
    Feed,
    Found,
    Input,
    StepEngine,
    search_sequentially,
    search_with_fallback,
)
from transept.decoding.step import Hypothesis, length_penalty
from transept.formats import ctranslate2_writer as export
from transept.formats.ctranslate2_writer import Names
from transept.model.transformer import Transformer
from transept.progress import Tally, Watch
from transept.text.tokenizer import EOS_ID

Precision = Literal["float32", "int8"]

MAX_TOKENS = 4096
"""Maximum number of source tokens per batch, padding included. Each token counts once per
hypothesis of the beam."""


class _SubmittedBatch(NamedTuple):
    indices: list[int]
    """Indices of its inputs."""
    results: list[Any]
    """CTranslate2's results, or futures of them."""


class CTranslate2Engine:
    """One network in CTranslate2, on the CPU.

    Sentences with a forced prefix or required sequences, or with more positions than were exported,
    are passed to the fallback engine.
    """

    note, faster = "", None

    def __init__(
        self,
        model: Transformer,
        names: Names,
        fallback: StepEngine,
        precision: Precision = "float32",
        *,
        eos_id: int = EOS_ID,
    ) -> None:
        """Export a network and load it in CTranslate2.

        Args:
            model: The network.
            names: The names of its token ids in CTranslate2.
            fallback: Handles the sentences that CTranslate2 cannot.
            precision: The type in which weights and activations are multiplied.
            eos_id: The end symbol.
        """
        self.name = f"CTranslate2 {precision}"
        self.native = fallback
        self._source_names = names.source
        self._target_ids = {name: index for index, name in enumerate(names.target)}
        self._eos = names.target[eos_id]
        config = model.config
        learned = config.positions == "learned"
        self._n_positions = config.max_positions if learned else export.N_POSITIONS
        self._threads = torch.get_num_threads()
        self._translator = _load(model, names, precision, self._threads, eos_id)

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first."""
        other = self.native.search
        return search_with_fallback(self._search, other, self._is_supported, inputs, config, watch)

    def _is_supported(self, one: Input) -> bool:
        return not (one.prefix or one.required or one.n_positions > self._n_positions)

    def _search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in inputs]
        tally = Tally(watch, len(inputs))
        longest_first = sorted(range(len(inputs)), key=lambda index: -len(inputs[index].source))
        for batch in self._results(longest_first, inputs, config):
            for index, result in zip(batch.indices, batch.results, strict=True):
                found[index] = self._outputs(result, inputs[index], config)
            tally.add(len(batch.indices))
        return found

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that arrive while a batch runs; they wait until it ends."""
        return search_sequentially(lambda _, *search: self.search(*search), feed, config)

    def _results(
        self, indices: Sequence[int], inputs: Sequence[Input], config: SearchConfig
    ) -> Iterator[_SubmittedBatch]:
        """Batches with their results. CTranslate2 computes the next ones in the background."""
        waiting: deque[_SubmittedBatch] = deque()
        for batch in self._batches(indices, inputs, config.beam_size):
            submitted = self._submit([inputs[index] for index in batch], config)
            waiting.append(_SubmittedBatch(batch, submitted))
            if len(waiting) > self._threads:
                yield _collected(waiting.popleft())
        while waiting:
            yield _collected(waiting.popleft())

    def _batches(
        self, indices: Sequence[int], inputs: Sequence[Input], beam_size: int
    ) -> Iterator[list[int]]:
        """Adjacent indices in batches: at most MAX_TOKENS tokens each, at least one per thread."""
        share = -(-len(indices) // self._threads)
        start = 0
        while start < len(indices):
            width = len(inputs[indices[start]].source)
            n = max(1, min(MAX_TOKENS // (beam_size * width), share))
            yield list(indices[start : start + n])
            start += n

    def _submit(self, inputs: Sequence[Input], config: SearchConfig) -> list[Any]:
        names = self._source_names
        submitted: list[Any] = self._translator.translate_batch(
            [[names[index] for index in one.source] for one in inputs],
            beam_size=config.beam_size,
            # Without a length penalty, CTranslate2 ranks like the paper: n_best outputs suffice.
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

    def _outputs(self, result: Any, one: Input, config: SearchConfig) -> list[Hypothesis]:
        """The outputs of a sentence, best first, by the paper's score.

        CTranslate2 has one maximum length per batch. If an output of this sentence is longer than
        its own maximum length, the sentence is searched again separately.
        """
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
        written = tokens[:-1] if finished else tokens
        ids = tuple(map(self._target_ids.__getitem__, written))
        return Hypothesis(ids, log_p, log_p / length_penalty(len(tokens), alpha), finished)


def _collected(batch: _SubmittedBatch) -> _SubmittedBatch:
    """Wait for the results of a batch."""
    return batch._replace(results=[one.result() for one in batch.results])


def _load(model: Transformer, names: Names, precision: Precision, threads: int, eos_id: int) -> Any:
    """Load the network in CTranslate2, from a temporary directory."""
    export.require()
    import ctranslate2

    with tempfile.TemporaryDirectory(prefix="transept-") as directory:
        export.save(model, names, Path(directory), quantization=precision, eos_id=eos_id)
        return ctranslate2.Translator(
            directory, compute_type=precision, inter_threads=threads, intra_threads=1
        )
