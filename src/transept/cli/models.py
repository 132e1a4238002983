"""`--model`, `--device` and `--engine`, which mean the same wherever a model is used."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from transept.api.config import EngineName
from transept.cli.app import complain
from transept.errors import ConfigError

if TYPE_CHECKING:
    from transept.api.parser import Parser
    from transept.api.transducer import Transducer


@dataclass(frozen=True, kw_only=True)
class Models:
    """Which model to use, and where."""

    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    """The directory of a model or of a run, or the name of a shipped model; unless given, the
    default shipped one. Given several times, the models decide together."""
    device: str = "auto"
    """Where to compute: cpu, cuda, cuda:1; auto is a GPU where there is one."""

    def load(self) -> "Transducer":
        """A model that translates, ready to use."""
        return self._load("native")

    def _load(self, engine: EngineName) -> "Transducer":
        from transept.api.models import load
        from transept.api.parser import Parser

        model = load(*self.model, device=self.device, engine=engine)
        if isinstance(model, Parser):
            raise ConfigError(f"{self.names} is a parsing model: use `transept parse`")
        return model

    def load_parser(self) -> "Parser":
        """A model that parses, ready to use."""
        from transept.api.models import load
        from transept.api.parser import Parser

        model = load(*self.model, device=self.device)
        if not isinstance(model, Parser):
            raise ConfigError(
                f"{self.names} is no parsing model: `transept train configs/parsing-small.toml` "
                "makes one; `transept translate` uses this one"
            )
        return model

    @property
    def names(self) -> str:
        """What to call it in a report."""
        from transept.api.models import find_model

        return " + ".join(str(find_model(name)) for name in self.model or [None])


@dataclass(frozen=True, kw_only=True)
class Translators(Models):
    """Which model to use, where, and what searches."""

    engine: EngineName = "auto"
    """What searches for translations: native is transept itself; ctranslate2 and ctranslate2-int8
    are CTranslate2 with the same weights, on a CPU, in single precision or with 8-bit integers,
    which is quicker and changes results. CTranslate2 ends its beam search by other rules than the
    paper's: outputs are ranked by the paper's score all the same. auto is native, but for a model
    that was quantized to int8, on a CPU where CTranslate2 is installed."""

    def load(self) -> "Transducer":
        """A model that translates, ready to use; where another engine searches, that is told."""
        model = self._load(self.engine)
        if model.engine.note:
            complain(f"engine: {model.engine.name}. {model.engine.note}.")
        return model


ANY_MODEL = Models()
ANY_TRANSLATOR = Translators()
MODEL_OPTIONS = Parameter(name="*", group=Group("Model", sort_key=1))
