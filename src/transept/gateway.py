"""Access to the engines, without importing them.

`transept.engines` and `transept.formats` import the paper's network, its training and its search.
Those packages must not import the engines. They call `engines()` instead.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from transept.data.config import BatchConfig
from transept.decoding.engine import Engine, StepEngine
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.progress import Watch
from transept.quantization import Precision
from transept.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transept.training.update import Update


class Engines(Protocol):
    """The interface of `transept.engines.choice`."""

    def native(self, models: Sequence[Transformer]) -> StepEngine:
        """The engine that supports every device and every variant of the network."""

    def choose(
        self,
        name: str,
        models: Sequence[Transformer],
        tokenizers: tuple[Tokenizer, Tokenizer],
        stored: Sequence[Precision],
        shortlist: Path | None = None,
    ) -> Engine:
        """The decoding engine with this name, for these models."""

    def learn_shortlist(self, corpus: Path, file: Path, watch: Watch) -> None:
        """Learn from a prepared corpus which target tokens co-occur with each source token."""

    def training_obstacles(self, model: ModelConfig, batch: BatchConfig) -> list[str]:
        """Why the training kernels cannot be used; empty if they can."""

    def training_update(self, batch: BatchConfig) -> "Callable[..., Update]":
        """The class of the training step with kernels. Its constructor is like that of `Update`."""


def engines() -> Engines:
    """The engines, imported on the first call."""
    return cast(Engines, import_module("transept.engines.choice"))
