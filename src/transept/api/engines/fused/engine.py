"""The search on the GPU as an engine; what it does not know goes to the networks themselves."""

from collections.abc import Iterator, Sequence

import torch

from transept.api.engines.engine import Done, Feed, Found, Input
from transept.api.engines.fused.door import Door
from transept.api.engines.fused.search import FusedSearch, is_beyond
from transept.api.engines.native import NativeEngine
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis
from transept.model.transformer import Transformer
from transept.text.tokenizer import EOS_ID

DTYPE = torch.float16
"""What matrices are multiplied in: it has three bits more than bfloat16, for near ties, and nothing
in a post-norm network comes near its largest number."""
MAX_WIDTH = 8
"""The candidates of a wider beam are too many for one warp."""


class FusedEngine:
    """All of a search on the GPU, in half precision with scores in single precision."""

    name = "fused"
    note = ""

    def __init__(self, model: Transformer, others: NativeEngine) -> None:
        """Take a model on a GPU.

        Args:
            model: The network; it is copied in the type that is computed in.
            others: Searches where this engine cannot.
        """
        self._search, self._others = FusedSearch(model, DTYPE, EOS_ID), others

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first (section 6.1)."""
        if config.beam_size > MAX_WIDTH or any(map(is_beyond, inputs)):
            return self._others.search(inputs, config, watch)
        return self._search(inputs, config, watch)

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while others are under way."""
        if config.beam_size > MAX_WIDTH:
            yield from self._others.search_feed(feed, config)
            return
        door = Door(feed)
        while first := door.first():
            n_before = door.n_entered
            if is_beyond(first):
                (outputs,) = self.search(door.enter(1, is_beyond), config, lambda _: door.ask())
                yield [(n_before, outputs)]
                continue
            for ended in self._search.follow(door, config):
                yield [(n_before + number, outputs) for number, outputs in ended]
