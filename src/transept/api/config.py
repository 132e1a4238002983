"""Options of translation. Does not import torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict, get_args

from transept.config import Checks, structure
from transept.decoding.config import BeamConfig, SamplingConfig, SearchConfig
from transept.errors import ConfigError, Problem
from transept.progress import Watch, no_progress
from transept.text.glossary import Glossary, GlossarySource
from transept.text.moses import Language

TooLong = Literal["refuse", "split"]
Segmentation = Literal["likeliest", "canonical"]
"""Which segmentation of a target text `Transducer.score` scores: see there."""
Format = Literal["text", "html", "markdown"]
"""The formats of texts to translate."""
EngineName = Literal[
    "auto", "fastest", "native", "native-int8", "fused", "ctranslate2", "ctranslate2-int8"
]
"""The names of engines. See `transept.engines.choice.choose`."""
LEAST_SOURCE_LENGTH = 8
"""A single character may need five tokens, and the end symbol one."""


@dataclass(frozen=True, kw_only=True)
class ReadingConfig:
    """How to split text into sentences."""

    split: bool = True
    """Translate text sentence by sentence, and keep the white space between sentences."""
    source_language: Language = "other"
    """The language whose abbreviations and ordinals to expect when splitting. `other` expects those
    of any language."""
    too_long: TooLong = "split"
    """How to handle a sentence with too many tokens: split it at a clause, at white space or, if
    necessary, anywhere, or refuse it with an error."""
    max_source_length: int | None = None
    """Maximum tokens per sentence, including the end symbol. Default: the longest that the model
    was trained on."""
    target_language: str | None = None
    """The target language, for an imported model that has several. A text may instead begin with a
    tag such as `>>de<<`."""
    raw: bool = False
    """Return the output of the model: do not protect URLs, placeholders, numbers and
    similar text, and do not adapt punctuation and quotation marks to the source."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        check_max_source_length(checks, self.max_source_length)
        checks.done()


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(ReadingConfig, SearchConfig):
    """How to split text, and how to search for the translation of each sentence."""

    def __post_init__(self) -> None:
        SearchConfig.__post_init__(self)
        ReadingConfig.__post_init__(self)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "TranslationConfig":
        """Make a config from options. An error for an unknown one suggests the nearest name."""
        return structure(cls, given(options))


class Options(TypedDict, total=False):
    """The keyword arguments of `Transducer.translate`: `TranslationConfig` and more."""

    beam_size: int
    length_penalty: float
    n_best: int
    max_length_factor: float
    max_length_extra: int
    split: bool
    source_language: Language
    too_long: TooLong
    max_source_length: int | None
    raw: bool
    target_language: str | None
    format: Format
    alignments: bool
    sampling: SamplingConfig | None
    prefix: str | Sequence[str] | None
    glossary: GlossarySource | None
    keep: Sequence[str]
    watch: Watch


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """The validated arguments of `Transducer.translate`."""

    config: TranslationConfig
    format: Format = "text"
    alignments: bool = False
    sampling: SamplingConfig | None = None
    prefix: str | Sequence[str] | None = None
    glossary: Glossary | None = None
    watch: Watch = no_progress

    @property
    def widened(self) -> TranslationConfig:
        """The config for the search: all of the beam, if outputs with the same text are dropped."""
        config = self.config
        return config if config.n_best == 1 else replace(config, n_best=config.beam_size)

    @classmethod
    def of_text(cls, options: Options, what: str, without: Sequence[str] = ()) -> "Request":
        """Validate options of `what`, which does not support documents and some options."""
        why = f"is not supported for {what}; use `translate`"
        if wrong := given(options).keys() & {*without}:
            raise ConfigError([Problem(key, why) for key in without if key in wrong])
        request = cls.of(options)
        if request.format != "text":
            raise ConfigError([Problem("format", f"{request.format} {why}")])
        return request

    @classmethod
    def of(cls, options: Options) -> "Request":
        """Validate options."""
        options = options.copy()
        alignments, watch = options.pop("alignments", False), options.pop("watch", no_progress)
        sampling, prefix = options.pop("sampling", None), options.pop("prefix", None)
        terms, keep = options.pop("glossary", None), options.pop("keep", ())
        glossary = None if terms is None and not keep else Glossary.of(terms, keep)
        format = options.pop("format", "text")
        if isinstance(prefix, str) and not prefix.strip():
            prefix = None
        if prefix is not None:
            # The output of the model must begin with the prefix.
            options["raw"] = True
            options["split"] = False
        _check_format(format, {"alignments": alignments, "prefix": prefix is not None})
        if sampling is not None:
            _check_sampling(sampling)
            _reject_beam_options(options)
            _reject_glossary(glossary)
            options["beam_size"] = options.get("n_best") or 1  # n_best must not exceed it
        return cls(
            config=TranslationConfig.of(options) if options else DEFAULT,
            format=format,
            alignments=alignments,
            sampling=sampling,
            prefix=prefix,
            glossary=glossary,
            watch=watch,
        )


def _check_format(format: object, given: Mapping[str, bool]) -> None:
    """Reject an unknown format, and options that a document cannot have."""
    if format not in get_args(Format):
        known = ", ".join(map(repr, get_args(Format)))
        raise ConfigError([Problem("format", f"{format!r} is not one of {known}")])
    if format != "text":
        why = f"cannot be combined with the format {format}; omit it"
        if wrong := [Problem(name, why) for name, is_given in given.items() if is_given]:
            raise ConfigError(wrong)


def _check_sampling(sampling: object) -> None:
    if not isinstance(sampling, SamplingConfig):
        what = f"{sampling!r} is not a SamplingConfig; use transept.SamplingConfig(seed=1)"
        raise ConfigError([Problem("sampling", what)])


def _reject_beam_options(options: Options) -> None:
    unused = given(options).keys() & {field.name for field in fields(BeamConfig)}
    if unused:
        why = "is for beam search and cannot be combined with sampling; omit one of them"
        raise ConfigError([Problem(name, why) for name in sorted(unused)])


def _reject_glossary(glossary: Glossary | None) -> None:
    if glossary is not None:
        why = "cannot be combined with sampling, which may omit a term; omit one of them"
        raise ConfigError([Problem("glossary", why)])


def check_max_source_length(checks: Checks, max_source_length: int | None) -> None:
    """Require a length that fits at least one character."""
    checks.that(
        max_source_length is None or max_source_length >= LEAST_SOURCE_LENGTH,
        "max_source_length",
        f"must be at least {LEAST_SOURCE_LENGTH}, or omitted",
    )


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not None."""
    return {name: option for name, option in options.items() if option is not None}


DEFAULT = TranslationConfig()
"""The search of section 6.1, which most calls ask for."""
