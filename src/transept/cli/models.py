"""`--model` and `--device`, which mean the same in every command that uses a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

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
        from transept.api.models import load
        from transept.api.parser import Parser

        model = load(*self.model, device=self.device)
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


ANY_MODEL = Models()
MODEL_OPTIONS = Parameter(name="*", group=Group("Model", sort_key=1))
