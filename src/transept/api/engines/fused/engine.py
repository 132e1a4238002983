"""The search on the GPU as an engine; what it does not know goes to the networks themselves."""

from collections.abc import Sequence

import torch

from transept.api.engines.engine import Done, Input
from transept.api.engines.fused.search import FusedSearch
from transept.api.engines.native import NativeEngine
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis
from transept.kernels import LONGEST
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
        beyond = any(one.prefix or one.n_positions >= LONGEST for one in inputs)
        if beyond or config.beam_size > MAX_WIDTH:
            return self._others.search(inputs, config, watch)
        return self._search(inputs, config, watch)
