"""The options `--model`, `--device` and `--engine`, shared by all commands that use a model."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from cyclopts import Group, Parameter

from transept.api.config import EngineName
from transept.cli.app import complain
from transept.errors import ConfigError

if TYPE_CHECKING:
    from transept.api.parser import Parser
    from transept.api.transducer import Transducer

MANY_TEXTS = 500
"""The minimum number of texts for a hint about a faster engine."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """The model and the device."""

    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """The directory of a model, a run, a demo or a recipe, or the name of a bundled model: en-de,
    de-en, en-fr or fr-en. Default: en-de. If given several times, the models form an ensemble."""
    device: str = "auto"
    """The device: cpu, cuda, cuda:1, or auto, which is a GPU if available."""

    def load(self) -> "Transducer":
        """Load the model for translation."""
        return self._load("native")

    def _load(self, engine: EngineName, shortlist: Path | None = None) -> "Transducer":
        from transept.api.models import load

        return load(*self.model, device=self.device, engine=engine, shortlist=shortlist)

    def resolved(self) -> Self:
        """The same models by their directories, since the best model of a run may change."""
        from transept.shelf import find_model

        directories = tuple(str(find_model(name)) for name in self.model or [None])
        return dataclasses.replace(self, model=directories)

    @property
    def names(self) -> str:
        """The name of the model in a report."""
        return " + ".join(self.resolved().model)


@dataclass(frozen=True, kw_only=True)
class Translators(Models):
    """The model, the device and the engine."""

    engine: EngineName = "auto"
    """The decoding engine. native: PyTorch, in single precision. native-int8: the same on a CPU,
    with 8-bit integers where this machine multiplies them faster. fused: the whole beam search on a
    GPU, in half precision, many times as fast. ctranslate2, ctranslate2-int8: CTranslate2 with the
    same weights, on a CPU, in single precision or with 8-bit integers, which is faster but changes
    results. CTranslate2 stops its beam search by different rules than the paper, but outputs are
    ranked by the paper's score. auto: fused on a GPU, native on a CPU. fastest: ctranslate2-int8 on
    a CPU if the model is stored in int8 and CTranslate2 is installed, otherwise auto."""
    shortlist: Path | None = None
    """A file written by `transept data prepare --shortlist`. Restricts the output vocabulary to
    tokens that co-occurred with the source tokens in a corpus. Faster on a CPU. A few translations
    change, and may depend on the other sentences of the batch."""

    def load(self, n_texts: int | None = None) -> "Transducer":
        """Load the model for translation.

        Args:
            n_texts: The number of texts to translate, if known. If it is large, print a hint about
                a faster engine that is installed.
        """
        model = self._load(self.engine, self.shortlist)
        if model.engine.note:
            complain(f"engine: {model.engine.name}. {model.engine.note}.")
        faster = model.engine.faster
        if faster is not None and (n_texts or 0) >= MANY_TEXTS:
            complain(f"hint: --engine {faster} is faster; its search differs from the paper's")
        return model

    def native(self, option: str) -> Self:
        """The same models with the native engine, the only one that supports the option."""
        if self.engine not in ("auto", "native"):
            raise ConfigError(
                f"{option} and --engine {self.engine} cannot be combined; omit one of them"
            )
        return dataclasses.replace(self, engine="native")


@dataclass(frozen=True, kw_only=True)
class Parsers(Models):
    """The parsing model and the device."""

    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """The directory of a parsing model or its run. None is bundled. If given several times, the
    models form an ensemble."""

    def load_parser(self) -> "Parser":
        """Load the model for parsing."""
        from transept.api.models import load_parser

        if not self.model:
            raise ConfigError(
                "no parser is bundled: set --model to the directory of one, such as the output of "
                "`transept train configs/parsing-small.toml`"
            )
        return load_parser(*self.model, device=self.device)


ANY_MODEL = Models()
ANY_PARSER = Parsers()
ANY_TRANSLATOR = Translators()
MODEL_OPTIONS = Parameter(name="*", group=Group("Model", sort_key=1))


def tokenizer_of(name: Path, side: Literal["source", "target"] = "source") -> Path:
    """The directory of the tokenizer given by `--tokenizer`, which may be a model."""
    from transept.text.tokenizer import MANIFEST_FILE

    if (name / MANIFEST_FILE).exists():
        return name
    # Imported here because it imports torch, which a tokenizer does not need.
    from transept.checkpoint import TARGET_TOKENIZER, TOKENIZER
    from transept.shelf import find_tokenizer

    return find_tokenizer(name, TARGET_TOKENIZER if side == "target" else TOKENIZER)
