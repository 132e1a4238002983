"""The models that are served, by their languages. Each can be reloaded while it serves."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Literal, TypeVar

from transept.api.card import Card
from transept.api.models import load_any
from transept.api.parser import Parser
from transept.api.transducer import Transducer
from transept.apps.serve.languages import is_code, name_of
from transept.errors import ConfigError, Problem
from transept.shelf import find_model

log = logging.getLogger("transept.apps.serve")

WARM_UP = (1, 4, 16, 64, 256)
"""So many sentences are translated together, one number after another, before a GPU model serves.

The GPU compiles its kernels at their first run. On an H200 the first client waited 13 seconds.
"""

Model = TypeVar("Model", bound=Transducer | Parser)


@dataclass(eq=False, slots=True)
class Served:
    """A model that translates, and its languages."""

    source: str
    target: str
    transducer: Transducer
    load: Callable[[], Transducer] | None = None
    """Loads the model again; None if it was not loaded from files."""

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def reload(self) -> None:
        """Load the model again; keep the old one if the new one is damaged or incomplete."""
        self.transducer = _reloaded(str(self), self.load, self.transducer)


@dataclass(eq=False, slots=True)
class ServedParser:
    """A model that parses."""

    parser: Parser
    load: Callable[[], Parser] | None = None
    """Loads the model again; None if it was not loaded from files."""

    def __str__(self) -> str:
        return "parser"

    def reload(self) -> None:
        """Load the model again; keep the old one if the new one is damaged or incomplete."""
        self.parser = _reloaded(str(self), self.load, self.parser)


AnyServed = Served | ServedParser


def _reloaded(name: str, load: Callable[[], Model] | None, old: Model) -> Model:
    if load is None:
        return old
    try:
        model = load()
    except Exception as error:  # whatever goes wrong, the old model must go on serving
        log.error("%s: not reloaded, the old model goes on: %s", name, error)
        return old
    log.info("%s: reloaded", name)
    return model


class ServedModels:
    """All models that are served: at most one for each pair of languages, and one parser."""

    def __init__(self, served: Sequence[AnyServed]) -> None:
        if not served:
            raise ConfigError("a server needs a model")
        translating = [one for one in served if isinstance(one, Served)]
        parsers = [one for one in served if isinstance(one, ServedParser)]
        self._by_pair = {(one.source, one.target): one for one in translating}
        self.parser = parsers[0] if parsers else None
        names = sorted(map(str, served))
        twice = next((one for one, other in pairwise(names) if one == other), None)
        if twice is not None:
            what = "two models parse" if len(parsers) > 1 else f"two models translate {twice}"
            raise ConfigError([Problem("model", f"{what}: leave one out")])

    def __iter__(self) -> Iterator[Served]:
        return iter(self._by_pair.values())

    @property
    def first(self) -> Served | None:
        """The model for a request that names no languages; None if no model translates."""
        return next(iter(self), None)

    @property
    def codes(self) -> list[str]:
        """Every language that a model reads or writes."""
        return list(dict.fromkeys(code for pair in self._by_pair for code in pair))

    @property
    def languages(self) -> dict[Literal["source", "target"], list[str]]:
        """The languages that models read, and those that they write."""
        return {
            "source": list(dict.fromkeys(source for source, _ in self._by_pair)),
            "target": list(dict.fromkeys(target for _, target in self._by_pair)),
        }

    def targets(self, source: str) -> list[str]:
        """The languages to which a language can be translated."""
        return [target for one, target in self._by_pair if one == source]

    def get(self, source: str, target: str) -> Served | None:
        """The model that translates from one language to another; None if there is none."""
        return self._by_pair.get((source, target))

    def reload(self) -> None:
        """Reload every model, one after another."""
        for one in self:
            one.reload()
        if self.parser is not None:
            self.parser.reload()


def open_model(name: str | None, source: str | None, target: str | None, device: str) -> AnyServed:
    """Load the model that `--model` names: `MODEL`, or `en-de=MODEL` to name its languages too.

    Args:
        name: What the user gave; None is the shipped model.
        source: The language that it reads, if the user named it by an option of its own.
        target: The language that it writes, likewise.
        device: Where it computes.
    """
    pair, equals, path = (name or "").partition("=")
    if not equals or not _is_pair(pair):
        pair, path = "", name or ""

    model = _opened(path, device, (Transducer, Parser))
    if isinstance(model, Parser):
        return ServedParser(model, lambda: _opened(path, device, Parser))
    directory = find_model(path or None)
    card = Card.load(directory)
    carded = f"{card.source_language}-{card.target_language}" if card else ""
    named = (one for one in (pair, Path(path).name, directory.name, carded) if _is_pair(one))
    known_source, _, known_target = next(named, "").partition("-")
    languages = (source or known_source, target or known_target)
    for key, code in zip(("source_language", "target_language"), languages, strict=True):
        if not is_code(code):
            what = (
                f"{code!r} is no language code such as en"
                if code
                else f"{directory} does not say its languages: name them, such as --model "
                f"en-de={path} for English to German"
            )
            raise ConfigError([Problem(key, what)])
    return Served(*languages, model, lambda: _opened(path, device, Transducer))


def _opened(path: str, device: str, kind: type[Model] | tuple[type[Model], ...]) -> Model:
    # The path is looked up at each reload: a run may have a better checkpoint now.
    directory = find_model(path or None)
    model = load_any(directory, device=device, engine="fastest")
    if not isinstance(model, kind):
        what = f"{directory} holds a {type(model).__name__} now, and was something else"
        raise ConfigError([Problem("model", what)])
    if isinstance(model, Transducer) and model.model.projection.weight.is_cuda:
        for n_sentences in WARM_UP:
            _warm_up(model, n_sentences)
    return model


def _warm_up(model: Transducer, n_sentences: int) -> None:
    waiting = iter([unit for (unit,) in model.units(["Hello."] * n_sentences)])
    for _ in model.translate_feed(lambda n: [*islice(waiting, n)]):
        pass


def _is_pair(text: str) -> bool:
    source, dash, target = text.partition("-")
    return bool(dash) and is_code(source) and is_code(target)


def describe(served: AnyServed) -> str:
    """What a model translates, and with which engine, for the user."""
    if isinstance(served, ServedParser):
        return "trees"
    engine = served.transducer.engine.name
    return f"{name_of(served.source)} to {name_of(served.target)} (engine: {engine})"
