"""The served models by language pair, and language detection.

Each model can be reloaded while it serves.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

from transept.api.card import Card
from transept.api.models import load_any
from transept.api.parser import Parser
from transept.api.transducer import Transducer
from transept.apps.serve.messages import Detection
from transept.errors import Argument, ConfigError, Problem
from transept.shelf import find_model

log = logging.getLogger("transept.apps.serve")

WARM_UP = (1, 4, 16, 64, 256)
"""Batch sizes that a model on a GPU translates before it serves.

GPU kernels are compiled at their first run. On an H200 that delayed the first request by 13 s.
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


@dataclass(eq=False, slots=True)
class ServedParser:
    """A model that parses."""

    parser: Parser
    load: Callable[[], Parser] | None = None
    """Loads the model again; None if it was not loaded from files."""

    def __str__(self) -> str:
        return "parser"


AnyServed = Served | ServedParser


class ServedModels:
    """The served models: at most one per language pair, and at most one parser."""

    def __init__(self, served: Sequence[AnyServed]) -> None:
        if not served:
            raise ConfigError("a server needs at least one model")
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
        """The model for requests without languages. None if no model translates."""
        return next(iter(self), None)

    @property
    def codes(self) -> list[str]:
        """All source and target languages."""
        return list(dict.fromkeys(code for pair in self._by_pair for code in pair))

    def targets(self, source: str) -> list[str]:
        """The target languages of a source language."""
        return [target for one, target in self._by_pair if one == source]

    def get(self, source: str, target: str) -> Served | None:
        """The model for a language pair. None if there is none."""
        return self._by_pair.get((source, target))

    def reload(self) -> None:
        """Reload every model. Keep the old one if the new one is damaged or incomplete."""
        for one in self:
            one.transducer = _reloaded(str(one), one.load, one.transducer)
        if self.parser is not None:
            parser = self.parser
            parser.parser = _reloaded(str(parser), parser.load, parser.parser)


def _reloaded(name: str, load: Callable[[], Model] | None, old: Model) -> Model:
    if load is None:
        return old
    try:
        model = load()
    except Exception as error:  # after any error, the old model must continue to serve
        log.error("%s: not reloaded, still serving the old model: %s", name, error)
        return old
    log.info("%s: reloaded", name)
    return model


# --- loading ---------------------------------------------------------------------------------


def open_model(name: str | None, source: str | None, target: str | None, device: str) -> AnyServed:
    """Load a model by name: `MODEL`, or `en-de=MODEL` to specify its languages too.

    Args:
        name: The value of --model. Default: the bundled model.
        source: The source language, if given separately.
        target: The target language, if given separately.
        device: The device.
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
        if not code:
            raise ConfigError(
                f"{directory} does not specify its languages: give them, such as ",
                Argument("model"), f" en-de={path} for English to German",
            )  # fmt: skip
        if not is_code(code):
            raise ConfigError([Problem(key, f"{code!r} is not a language code such as en")])
    return Served(*languages, model, lambda: _opened(path, device, Transducer))


def _opened(path: str, device: str, kind: type[Model] | tuple[type[Model], ...]) -> Model:
    # The path is looked up at each reload: a run may have a better checkpoint now.
    directory = find_model(path or None)
    model = load_any(directory, device=device, engine="fastest")
    if not isinstance(model, kind):
        what = f"{directory} now contains a {type(model).__name__}, which it did not before"
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
    """Describe a model for the user: its languages and its engine."""
    if isinstance(served, ServedParser):
        return "trees"
    engine = served.transducer.engine.name
    return f"{name_of(served.source)} to {name_of(served.target)} (engine: {engine})"


# --- languages -------------------------------------------------------------------------------

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish",
    "et": "Estonian", "fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew",
    "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nb": "Norwegian", "nl": "Dutch",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip

_LABELS = {"nb": "no"}
"""Codes for which py3langid uses a different label."""
DETECTION_CHARACTERS = 2_000
"""Detection uses at most this many characters from the start of a text."""
CONFIDENT = 50.0
"""With at least this confidence, a language is more likely than all others together."""


def is_code(text: str) -> bool:
    """Whether a text looks like an ISO 639 language code: two or three lowercase letters."""
    return re.fullmatch("[a-z]{2,3}", text) is not None


def name_of(code: str) -> str:
    """The English name of a language. Its code if the name is unknown."""
    return NAMES.get(code, code)


def guess(text: str, languages: Sequence[str]) -> list[Detection]:
    """The confidence that a text is in each of these languages, highest first.

    If the text has no letters, all confidences are 0 and the order of the languages is kept.
    """
    text = text[:DETECTION_CHARACTERS]
    likelihood: dict[str, float] = {}
    if any(letter.isalpha() for letter in text):
        likelihood = dict(_identifier().rank(text))
    served = {code: likelihood.pop(_LABELS.get(code, code), 0.0) for code in languages}
    # The text may be in another language. So the total includes the most likely other language,
    # which lowers the confidences if the text is probably in it.
    total = sum(served.values()) + max(likelihood.values(), default=1.0)
    guesses = [Detection(code, round(100 * value / total, 1)) for code, value in served.items()]
    return sorted(guesses, key=lambda one: -one.confidence)


def guess_each(texts: Sequence[str], languages: Sequence[str]) -> list[Detection]:
    """The most likely language of each text. Unclear texts get the language of all texts joined."""
    each = [guess(text, languages)[0] for text in texts]
    if len(texts) == 1 or all(one.confidence >= CONFIDENT for one in each):
        return each
    together = guess("\n".join(texts), languages)[0]
    return [one if one.confidence >= CONFIDENT else together for one in each]


@cache
def _identifier() -> Any:
    # Imported here because the import takes almost a second. Only the first detection is delayed.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
