"""The served models by language pair, routes through a pivot, and language detection.

Each model can be reloaded while it serves.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby, islice, pairwise, permutations
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from transept.api.card import Card
from transept.api.models import languages_of, load_any
from transept.api.parser import Parser
from transept.api.transducer import Transducer
from transept.apps.serve.messages import Detection
from transept.checkpoint import origin_of, read_about
from transept.errors import Argument, ConfigError, Problem, TranseptError
from transept.runtime.device import Runtime
from transept.shelf import find_model
from transept.text.imported import ImportedTokenizer
from transept.text.languages import is_code, name_of, pair_of

log = logging.getLogger("transept.apps.serve")

WARM_UP = (1, 4, 16, 64, 256)
"""Batch sizes that a model on a GPU translates before it serves.

GPU kernels are compiled at their first run. On an H200 that delayed the first request by 13 s.
"""

MOST_NAMES = 4
"""The maximum number of target languages of a model that are named when the server starts."""

Model = TypeVar("Model", bound=Transducer | Parser)


@dataclass(eq=False, slots=True)
class Served:
    """A model that translates, and its languages.

    A model with several target languages is served once for each.
    """

    source: str
    target: str
    transducer: Transducer
    load: Callable[[], Transducer] | None = None
    """Loads the model again; None if it was not loaded from files."""
    tag: str | None = None
    """The target language to request from the model, if it has several."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """The name, format and licence of an imported model, as far as known."""

    @property
    def pair(self) -> tuple[str, str]:
        """The source and the target language."""
        return self.source, self.target

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


class MissingPairError(TranseptError):
    """No model translates from one language to another."""


class ServedModels:
    """The served models: at most one per language pair, and at most one parser."""

    def __init__(self, served: Sequence[AnyServed], pivot: str | None = None) -> None:
        """Check that the models and the pivot go together.

        Args:
            served: The models. A model for one language pair takes precedence over a model with
                several target languages.
            pivot: The language through which to translate if no model serves a pair.
        """
        if not served:
            raise ConfigError("a server needs at least one model")
        translating = [one for one in served if isinstance(one, Served)]
        parsers = [one for one in served if isinstance(one, ServedParser)]
        alone = {one.pair for one in translating if one.tag is None}
        translating = [one for one in translating if one.tag is None or one.pair not in alone]
        self._by_pair = {one.pair: one for one in translating}
        self.parser = parsers[0] if parsers else None
        names = sorted(map(str, [*translating, *parsers]))
        twice = next((one for one, other in pairwise(names) if one == other), None)
        if twice is not None:
            what = "two models parse" if len(parsers) > 1 else f"two models translate {twice}"
            raise ConfigError([Problem("model", f"{what}: leave one out")])
        self.pivot = pivot
        if pivot and not self.are_joined_by(pivot):
            what = f"no model translates to {pivot!r}, or none from it to a third language; omit it"
            raise ConfigError([Problem("pivot", what)])

    def __iter__(self) -> Iterator[Served]:
        return iter(self._by_pair.values())

    def by_model(self) -> list[list[Served]]:
        """The language pairs of each model."""
        return [[*pairs] for _, pairs in groupby(self, attrgetter("source", "transducer"))]

    @property
    def first(self) -> Served | None:
        """The model for requests without languages. None if no model translates."""
        return next(iter(self), None)

    @property
    def codes(self) -> list[str]:
        """All source and target languages."""
        return list(dict.fromkeys(code for pair in self._by_pair for code in pair))

    def targets(self, source: str) -> list[str]:
        """The target languages of a source language, including those through the pivot."""
        return [code for code in self.codes if self.legs(source, code)]

    def legs(self, source: str, target: str) -> tuple[Served, ...]:
        """The model for a language pair, or the two models through the pivot. Empty if none."""
        direct = self._by_pair.get((source, target))
        if direct is not None:
            return (direct,)
        return self._through(self.pivot, source, target) if self.pivot else ()

    def are_joined_by(self, pivot: str) -> bool:
        """Whether some pair of languages can be translated through this one."""
        return any(self._through(pivot, *pair) for pair in permutations(self.codes, 2))

    def route(self, source: str, target: str) -> tuple[Served, ...]:
        """Return the legs. If there are none, raise an error that lists the language pairs."""
        legs = self.legs(source, target)
        if legs:
            return legs
        pairs = ", ".join(f"{one}-{other}" for one in self.codes for other in self.targets(one))
        missing = (
            f"{name_of(target)} ({target}) is not available as a target language from "
            f"{name_of(source)} ({source}). This server translates {pairs}"
        )
        pivot = next((code for code in self.codes if self._through(code, source, target)), None)
        if pivot is None:
            raise MissingPairError(missing)
        through = f" {pivot} would translate through {name_of(pivot)}"
        raise MissingPairError(missing, ". The server option ", Argument("pivot"), through)

    def _through(self, pivot: str, source: str, target: str) -> tuple[Served, ...]:
        first, second = self._by_pair.get((source, pivot)), self._by_pair.get((pivot, target))
        return (first, second) if first and second and source != target else ()

    def reload(self) -> None:
        """Reload every model. Keep the old one if the new one is damaged or incomplete."""
        for pairs in self.by_model():
            fresh = _reloaded(str(pairs[0]), pairs[0].load, pairs[0].transducer)
            for one in pairs:
                one.transducer = fresh
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


def open_models(
    names: Sequence[str | None], source: str | None, target: str | None, device: str
) -> list[AnyServed]:
    """Load models and the language detection; see `open_model`.

    On a CPU two are loaded at a time. On a GPU it is one, because no other thread may use the GPU
    while a graph of its operations is recorded.
    """
    on_cpu = Runtime.choose(device, "fp32").device.type == "cpu"
    with ThreadPoolExecutor(2 if on_cpu else 1) as pool:
        detection = pool.submit(load_detection)
        loading = [pool.submit(open_model, name, source, target, device) for name in names]
        served = [one for each in loading for one in each.result()]
        detection.result()
    return served


def open_model(
    name: str | None, source: str | None, target: str | None, device: str
) -> list[AnyServed]:
    """Load a model by name: `MODEL`, or `en-de=MODEL` to specify its languages too.

    A model with several target languages is served for each of them, or for the one that is given.
    `en=MODEL` specifies only its source language.

    Args:
        name: The value of --model. Default: the bundled model.
        source: The source language, if given separately.
        target: The target language, if given separately.
        device: The device.
    """
    given, path = _split_name(name or "")
    model = _opened(path, device, (Transducer, Parser))
    if isinstance(model, Parser):
        return [ServedParser(model, lambda: _opened(path, device, Parser))]

    directory = find_model(path or None)
    card = Card.load(directory)
    asked, known = (source or given[0], target or given[1]), languages_of(directory, Path(path))
    source, target = (one or other for one, other in zip(asked, known, strict=True))
    load, tags = partial(_opened, path, device, Transducer), target_tags(model)
    origin = origin_of(read_about(directory)) | ({"licence": card.licence} if card else {})
    if not tags:
        example = f" en-de={path} for English to German"
        _check({"source_language": source, "target_language": target}, directory, example)
        return [Served(source, target, model, load, None, origin)]
    _check({"source_language": source}, directory, f" en={path} for English")
    if asked[1]:
        model.source_tokenizer.target_tag("", asked[1])  # an error if the model does not have it
        tags = (asked[1],)
    return [Served(source, tag, model, load, tag, origin) for tag in tags]


def _check(languages: Mapping[str, str], directory: Path, example: str) -> None:
    """Require that every language is known and is a code."""
    for key, code in languages.items():
        if not code:
            raise ConfigError(
                f"{directory} does not specify its languages: give them, such as ",
                Argument("model"), example,
            )  # fmt: skip
        if not is_code(code):
            raise ConfigError([Problem(key, f"{code!r} is not a language code such as en")])


def _split_name(name: str) -> tuple[tuple[str, str], str]:
    """The languages before the equals sign in a value of --model, and the model."""
    before, equals, path = name.partition("=")
    given = (before, "") if is_code(before) else pair_of(before)
    return (given, path) if equals and given[0] else (("", ""), name)


def target_tags(model: Transducer) -> tuple[str, ...]:
    """The target languages of an imported model, if it has several."""
    tokenizer = model.source_tokenizer
    return tokenizer.tags if isinstance(tokenizer, ImportedTokenizer) else ()


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
    language = next(iter(target_tags(model)), None)
    units = model.units(["Hello."] * n_sentences, target_language=language)
    waiting = iter([unit for (unit,) in units])
    for _ in model.translate_feed(lambda n: [*islice(waiting, n)]):
        pass


def describe(pairs: Sequence[Served]) -> str:
    """Describe a model for the user: its languages, its engine and its origin."""
    model = pairs[0]
    some = [name_of(one.target) for one in pairs]
    targets = ", ".join(some) if len(some) <= MOST_NAMES else f"{len(some)} languages"
    facts = {"engine": model.transducer.engine.name, **model.origin}
    shown = "; ".join(f"{key.replace('_', ' ')}: {fact}" for key, fact in facts.items())
    return f"{name_of(model.source)} to {targets} ({shown})"


# --- languages -------------------------------------------------------------------------------

_LABELS = {"nb": "no"}
"""Codes for which py3langid uses a different label."""
DETECTION_CHARACTERS = 2_000
"""Detection uses at most this many characters from the start of a text."""
CONFIDENT = 50.0
"""With at least this confidence, a language is more likely than all others together."""


def guess(text: str, languages: Sequence[str], others: bool = False) -> list[Detection]:
    """The confidence that a text is in each of these languages, highest first.

    With `others`, the last item is the most likely other language, if the text has letters.
    If the text has no letters, all confidences are 0 and the order of the languages is kept.
    """
    text = text[:DETECTION_CHARACTERS]
    likelihood: dict[str, float] = {}
    if any(letter.isalpha() for letter in text):
        likelihood = dict(load_detection().rank(text))
    served = {code: likelihood.pop(_LABELS.get(code, code), 0.0) for code in languages}
    # The text may be in another language. So the total includes the most likely other language,
    # which lowers the confidences if the text is probably in it.
    total = sum(served.values()) + max(likelihood.values(), default=1.0)
    guesses = [Detection(code, round(100 * value / total, 1)) for code, value in served.items()]
    guesses.sort(key=lambda one: -one.confidence)
    if others and likelihood:
        code = max(likelihood, key=likelihood.__getitem__)
        guesses.append(Detection(code, round(100 * likelihood[code] / total, 1)))
    return guesses


def guess_each(texts: Sequence[str], languages: Sequence[str]) -> list[Detection]:
    """The most likely language of each text. Unclear texts get the language of all texts joined."""
    each = [guess(text, languages)[0] for text in texts]
    if len(texts) == 1 or all(one.confidence >= CONFIDENT for one in each):
        return each
    together = guess("\n".join(texts), languages)[0]
    return [one if one.confidence >= CONFIDENT else together for one in each]


@cache
def load_detection() -> Any:
    """The language identifier. It takes about a second to load, so a server loads it at start."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
