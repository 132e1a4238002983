"""`--model`, `--device` and `--engine`, which mean the same wherever a model is used."""

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
"""From this number of texts on, the time of a faster engine is worth a hint."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """Which model to use, and where."""

    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """The directory of a model, a run, a demo or a recipe, or the name of a shipped model, en-de or
    de-en. Default: en-de. If given several times, the models work together, as an ensemble."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:1; auto is a GPU where there is one."""

    def load(self) -> "Transducer":
        """A model that translates, ready to use."""
        return self._load("native")

    def _load(self, engine: EngineName, shortlist: Path | None = None) -> "Transducer":
        from transept.api.models import load

        return load(*self.model, device=self.device, engine=engine, shortlist=shortlist)

    def found(self) -> Self:
        """The same models by their own directories: a run may soon have another best model."""
        from transept.shelf import find_model

        directories = tuple(str(find_model(name)) for name in self.model or [None])
        return dataclasses.replace(self, model=directories)

    @property
    def names(self) -> str:
        """What to call it in a report."""
        return " + ".join(self.found().model)


@dataclass(frozen=True, kw_only=True)
class Translators(Models):
    """Which model to use, where, and what searches."""

    engine: EngineName = "auto"
    """What searches for translations. native: transept's networks, in single precision. fused: the
    whole search on a GPU, in half precision, many times as fast. ctranslate2, ctranslate2-int8:
    CTranslate2 with the same weights, on a CPU, in single precision or with 8-bit integers, which
    is faster and changes results; CTranslate2 ends its beam search by other rules than the
    paper's, but outputs are ranked by the paper's score. auto: the paper's search, by fused on a
    GPU and by native on a CPU. fastest: ctranslate2-int8 on a CPU if the model is stored in int8
    and CTranslate2 is installed, otherwise auto."""
    shortlist: Path | None = None
    """A file that `transept data prepare --shortlist` wrote. A translation then has only tokens
    that went with its source's tokens in a corpus. Faster on a CPU; a few translations change, and
    may depend on the sentences that are translated in the same batch."""

    def load(self, n_texts: int | None = None) -> "Transducer":
        """A model that translates, ready to use.

        Args:
            n_texts: The number of texts to translate, if known. For many, a hint names a faster
                engine, if one is installed.
        """
        model = self._load(self.engine, self.shortlist)
        if model.engine.note:
            complain(f"engine: {model.engine.name}. {model.engine.note}.")
        faster = model.engine.faster
        if faster is not None and (n_texts or 0) >= MANY_TEXTS:
            complain(f"hint: --engine {faster} is faster; its search differs from the paper's")
        return model

    def native(self, option: str) -> Self:
        """The same models with the native engine: no other one can do what the option asks for."""
        if self.engine not in ("auto", "native"):
            raise ConfigError(
                f"{option} and --engine {self.engine} do not go together; leave one out"
            )
        return dataclasses.replace(self, engine="native")


@dataclass(frozen=True, kw_only=True)
class Parsers(Models):
    """Which parsing model to use, and where."""

    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """The directory of a parsing model, or of a run; none is shipped. If given several times, the
    models work together, as an ensemble."""

    def load_parser(self) -> "Parser":
        """A model that parses, ready to use."""
        from transept.api.models import load_parser

        if not self.model:
            raise ConfigError(
                "no parser is shipped: give --model the directory of one, such as `transept train "
                "configs/parsing-small.toml` makes"
            )
        return load_parser(*self.model, device=self.device)


ANY_MODEL = Models()
ANY_PARSER = Parsers()
ANY_TRANSLATOR = Translators()
MODEL_OPTIONS = Parameter(name="*", group=Group("Model", sort_key=1))


def tokenizer_of(name: Path, side: Literal["source", "target"] = "source") -> Path:
    """The directory of the tokenizer that `--tokenizer` means: its own path, or a model's."""
    from transept.text.tokenizer import MANIFEST_FILE

    if (name / MANIFEST_FILE).exists():
        return name
    # Imported here because it brings torch along, which a tokenizer does not need.
    from transept.checkpoint import TARGET_TOKENIZER, TOKENIZER
    from transept.shelf import find_tokenizer

    return find_tokenizer(name, TARGET_TOKENIZER if side == "target" else TOKENIZER)
