"""The models that are served, by their languages; each can be loaded anew while it serves."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from transept.api.models import find_model, load
from transept.api.transducer import Transducer
from transept.errors import ConfigError, Problem, TranseptError
from transept.serving.languages import is_code, name_of

log = logging.getLogger("transept.serving")


@dataclass(eq=False, slots=True)
class Served:
    """A model, and the languages between which it translates."""

    source: str
    target: str
    transducer: Transducer
    load: Callable[[], Transducer] | None = None
    """Loads it anew; None where it came from nowhere."""

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def reload(self) -> None:
        """Take the model that is there now; keep the old one if it is not whole."""
        if self.load is None:
            return
        try:
            self.transducer = self.load()
        except TranseptError as error:
            log.error("%s: not reloaded, the old model goes on: %s", self, error)
        else:
            log.info("%s: reloaded", self)


class Models:
    """Every model that is served; no two between the same languages."""

    def __init__(self, served: Sequence[Served]) -> None:
        if not served:
            raise ConfigError("a server needs a model")
        self._by_pair = {(one.source, one.target): one for one in served}
        if len(self._by_pair) < len(served):
            names = sorted(map(str, served))
            twice = next(one for one, other in pairwise(names) if one == other)
            raise ConfigError([Problem("model", f"two models translate {twice}: leave one out")])

    def __iter__(self) -> Iterator[Served]:
        return iter(self._by_pair.values())

    @property
    def first(self) -> Served:
        """The model that is meant where a request does not say."""
        return next(iter(self))

    @property
    def codes(self) -> list[str]:
        """Every language that is read or written."""
        return list(dict.fromkeys(code for pair in self._by_pair for code in pair))

    @property
    def sources(self) -> list[str]:
        """Every language that is read."""
        return list(dict.fromkeys(source for source, _ in self._by_pair))

    def targets(self, source: str) -> list[str]:
        """What a language can be translated to."""
        return [target for one, target in self._by_pair if one == source]

    def get(self, source: str, target: str) -> Served | None:
        """The model between two languages."""
        return self._by_pair.get((source, target))

    def reload(self) -> None:
        """Load every model anew, one after another."""
        for one in self:
            one.reload()


def open_model(name: str | None, source: str | None, target: str | None, device: str) -> Served:
    """Load what `--model` names: `BUNDLE`, or `en-de=BUNDLE` where that says the languages.

    Args:
        name: As it was given; None is the shipped model.
        source: The language that it reads, where that was said apart.
        target: The language that it writes.
        device: Where it computes.
    """
    pair, equals, path = (name or "").partition("=")
    if not equals or not _is_pair(pair):
        pair, path = "", name or ""
    directory = find_model(path or None)
    if not pair and _is_pair(directory.name):
        pair = directory.name
    known_source, _, known_target = pair.partition("-")
    languages = (source or known_source, target or known_target)
    for key, code in zip(("source_language", "target_language"), languages, strict=True):
        if not is_code(code):
            what = (
                f"{code!r} is no language code such as en"
                if code
                else f"{directory} does not say its languages: give --source-language en "
                f"--target-language de, or --model en-de={path}"
            )
            raise ConfigError([Problem(key, what)])

    def opened() -> Transducer:
        # A run has another best checkpoint by and by: it is looked for anew each time.
        model = load(find_model(path or None), device=device)
        if not isinstance(model, Transducer):
            raise ConfigError([Problem("model", f"{directory} is a parser; serve a translator")])
        return model

    return Served(*languages, opened(), opened)


def _is_pair(text: str) -> bool:
    source, dash, target = text.partition("-")
    return bool(dash) and is_code(source) and is_code(target)


def describe(served: Served) -> str:
    """A line about a model for people: its languages by name."""
    return f"{name_of(served.source)} to {name_of(served.target)}"
