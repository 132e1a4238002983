"""What can be asked of a translation. No torch here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from transept.config import Checks, structure
from transept.decoding.config import BeamConfig, SamplingConfig, SearchConfig
from transept.errors import ConfigError, Problem
from transept.progress import Watch, no_progress
from transept.text.moses import Language

TooLong = Literal["refuse", "split"]
EngineName = Literal["auto", "fastest", "native", "fused", "ctranslate2", "ctranslate2-int8"]
"""The names of engines; `transept.engines.choice.choose` says what each is."""
LEAST_SOURCE_LENGTH = 8
"""A single character may take five tokens, and the end symbol one."""


@dataclass(frozen=True, kw_only=True)
class ReadingConfig:
    """How a text is taken apart."""

    split: bool = True
    """Translate text sentence by sentence, and keep the white space between them."""
    source_language: Language = "other"
    """Whose abbreviations and ordinals to expect when splitting; `other` expects any."""
    too_long: TooLong = "refuse"
    """What to do with a sentence that has too many tokens: refuse it, or cut it at a clause, at
    white space, or wherever it must be."""
    max_source_length: int | None = None
    """How many tokens a sentence may have, with the end symbol; unless given, as many as the
    longest that the model was trained on."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        check_longest(checks, self.max_source_length)
        checks.done()


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(ReadingConfig, SearchConfig):
    """How a text is taken apart, and how the output of each sentence is searched for."""

    def __post_init__(self) -> None:
        SearchConfig.__post_init__(self)
        ReadingConfig.__post_init__(self)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "TranslationConfig":
        """A config of options by name; an unknown one is named, with the nearest right one."""
        return structure(cls, given(options))


class Options(TypedDict, total=False):
    """The keywords of `Transducer.translate`: the fields of `TranslationConfig`, and more."""

    beam_size: int
    length_penalty: float
    n_best: int
    max_length_factor: float
    max_length_extra: int
    split: bool
    source_language: Language
    too_long: TooLong
    max_source_length: int | None
    alignments: bool
    sampling: SamplingConfig | None
    prefix: str | Sequence[str] | None
    watch: Watch


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What `Transducer.translate` was asked for, checked."""

    config: TranslationConfig
    alignments: bool = False
    sampling: SamplingConfig | None = None
    prefix: str | Sequence[str] | None = None
    watch: Watch = no_progress

    @classmethod
    def of(cls, options: Options) -> "Request":
        """Check what is to be a config, and pass the rest on."""
        options = options.copy()
        alignments, watch = options.pop("alignments", False), options.pop("watch", no_progress)
        sampling, prefix = options.pop("sampling", None), options.pop("prefix", None)
        if isinstance(prefix, str) and not prefix.strip():
            prefix = None
        if prefix is not None:
            options["split"] = False
        if sampling is not None:
            _check_sampling(sampling)
            _refuse_beam(options)
            options["beam_size"] = options.get("n_best") or 1  # so many draws, and no beam
        return cls(
            config=TranslationConfig.of(options) if options else DEFAULT,
            alignments=alignments,
            sampling=sampling,
            prefix=prefix,
            watch=watch,
        )


def _check_sampling(sampling: object) -> None:
    if not isinstance(sampling, SamplingConfig):
        what = f"{sampling!r} is not a SamplingConfig; give transept.SamplingConfig(seed=1)"
        raise ConfigError([Problem("sampling", what)])


def _refuse_beam(options: Options) -> None:
    """What a draw at random has no use for."""
    useless = given(options).keys() & {field.name for field in fields(BeamConfig)}
    if useless:
        why = "is for beam search, and does not go together with sampling; leave one out"
        raise ConfigError([Problem(name, why) for name in sorted(useless)])


def check_longest(checks: Checks, max_source_length: int | None) -> None:
    """It must leave room for a character."""
    checks.that(
        max_source_length is None or max_source_length >= LEAST_SOURCE_LENGTH,
        "max_source_length",
        f"must be at least {LEAST_SOURCE_LENGTH}, or left out",
    )


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say something: None is as good as left out."""
    return {name: option for name, option in options.items() if option is not None}


DEFAULT = TranslationConfig()
"""The search of section 6.1, which most calls ask for."""
