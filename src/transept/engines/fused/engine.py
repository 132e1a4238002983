"""The search on the GPU as an engine. Sentences that it cannot search for go to `native`."""

from collections.abc import Iterator, Sequence

import torch

from transept.decoding.config import SearchConfig
from transept.decoding.engine import Feed, Found, Input
from transept.decoding.hypothesis import Hypothesis
from transept.engines.fused.admission import AdmissionQueue
from transept.engines.fused.search import FusedSearch, is_unsupported
from transept.engines.native.engine import NativeEngine
from transept.model.transformer import Transformer
from transept.progress import Watch
from transept.text.tokenizer import EOS_ID

DTYPE = torch.float16
"""The type in which matrices are multiplied. It has three bits more than bfloat16, so it decides
near ties better. No number in a post-norm network comes near its largest one."""
MAX_WIDTH = 8
"""The widest beam: one warp handles the candidates of a sentence, and more would be too many."""


class FusedEngine:
    """Runs the whole search on the GPU, in half precision with scores in single precision."""

    name = "fused"
    note, faster = "", None

    def __init__(self, model: Transformer, fallback: NativeEngine) -> None:
        """Search with a model on a GPU.

        Args:
            model: The network. The engine computes with a copy of it in half precision.
            fallback: Searches where this engine cannot.
        """
        self._search, self.native = FusedSearch(model, DTYPE, EOS_ID), fallback

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1)."""
        if config.beam_size > MAX_WIDTH or any(map(is_unsupported, inputs)):
            return self.native.search(inputs, config, watch)
        return self._search(inputs, config, watch)

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while the search of others is running."""
        if config.beam_size > MAX_WIDTH:
            yield from self.native.search_feed(feed, config)
            return
        queue = AdmissionQueue(feed)
        while first := queue.first():
            n_before = queue.n_admitted
            if is_unsupported(first):
                alone = queue.admit(1, is_unsupported)
                (outputs,) = self.native.search(alone, config, lambda done, total: queue.poll())
                yield [(n_before, outputs)]
                continue
            for done in self._search.search_queue(queue, config):
                yield [(n_before + number, outputs) for number, outputs in done]
