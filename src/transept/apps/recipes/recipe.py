"""The schema of a recipe file. This module does not import torch."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from transept import config
from transept.api.config import EngineName
from transept.config import Checks, did_you_mean
from transept.data.cleaning import Cleaning
from transept.data.config import SubwordSampling
from transept.data.fetching.datasets import DatasetName
from transept.decoding.config import SearchConfig
from transept.errors import ConfigError
from transept.experiment import Experiment
from transept.text.tokenizer import Kind
from transept.text.variation import Variation

SHELF: Final = Path(__file__).parent

RECORD: Final = "record.json"
"""The file with all records in a work directory."""
DEV: Final = "dev"
"""The name of the validation corpus."""
StageName = Literal[
    "translate", "prepare", "train", "average", "decode", "score", "package", "report"
]
STAGES: Final[tuple[StageName, ...]] = get_args(StageName)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPair:
    """Two line-aligned files, optionally compressed as .gz, .xz or .zst.

    In their paths, `{source}` and `{target}` stand for the languages of the recipe.
    """

    source: Path
    """The file of source sentences, relative to the data directory."""
    target: Path
    """The file of their translations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeText:
    """Training text and its licence.

    With a translator, one side is enough. The translator writes the other side, or, if both are
    given, another target side. In paths and in the names of translators, `{source}` and `{target}`
    stand for the languages of the recipe.
    """

    name: str
    """The name in reports, and of the directory of the prepared corpus."""
    licence: str
    """The terms of use."""
    attribution: str = ""
    """The attribution that a model trained on it must include."""
    weight: float = 1.0
    """The number of times that each pair occurs in an epoch."""
    source: Path | None = None
    """The file of source sentences, relative to the data directory."""
    target: Path | None = None
    """The file of their translations."""
    translator: tuple[str, ...] = ()
    """A model, by name or path, or a recipe that trains one. Several are an ensemble."""
    max_lines: int | None = None
    """Only the first lines are read. None: all."""
    generated: Literal["times-of-day"] | None = None
    """Sentences that the recipe writes, instead of files. Only for English and German."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        if self.generated is not None:
            for key in ("source", "target"):
                is_given = getattr(self, key) is not None
                checks.that(not is_given, key, "cannot be combined with generated; omit one")
            checks.that(not self.translator, "translator", "cannot translate generated text")
        elif self.translator:
            is_given = self.source is not None or self.target is not None
            checks.that(is_given, "source", "and no target: name the file to translate")
        else:
            for key in ("source", "target"):
                is_given = getattr(self, key) is not None
                checks.that(is_given, key, "is not a file; name it, or a translator")
        if self.max_lines is not None:
            checks.that(not self.generated, "max_lines", "cannot shorten generated text; omit it")
            checks.at_least(1, "max_lines")
        checks.done()

    @property
    def is_written(self) -> bool:
        """Whether the recipe generates or shortens the text, without a translator."""
        shortened = self.max_lines is not None and not self.translator
        return self.generated is not None or shortened


@dataclass(frozen=True, kw_only=True, slots=True)
class TestSet(TextPair):
    """Text that is translated and scored, and never used for training."""

    name: str
    """The name in reports."""
    perplexity: bool = False
    """Whether to report the perplexity of the references too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SentencesConfig:
    """Text that the recipe writes to its work directory as train, dev and test."""

    folder: Path | None = None
    """A folder with custom files. None: the bundled English and German sentences."""
    pairs: int = 80_000
    """Maximum number of sentence pairs to train on."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(100, "pairs")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """Training of the joint vocabulary. Its size is the model's `vocab_size`."""

    kind: Kind = "bpe"
    """Byte-pair encoding, or a unigram language model, which is similar to WordPiece."""
    max_lines: int | None = None
    """Maximum number of lines to train on, sampled evenly. Default: the limit of the kind."""
    min_size: int | None = None
    """If there is too little text for `vocab_size` subwords, learn fewer, but at least this number.
    None: too little text is an error."""
    sampling: SubwordSampling | None = None
    """Subword regularization of the training text. None: none."""


@dataclass(frozen=True, kw_only=True)
class TextTranslation(SearchConfig):
    """How the translators of texts search. Their output is not changed afterwards."""

    engine: EngineName = "auto"
    """The decoding engine."""
    chunk: int = 20_000
    """The number of lines that are translated and stored together."""

    def __post_init__(self) -> None:
        SearchConfig.__post_init__(self)
        checks = Checks(self)
        checks.at_least(1, "chunk")
        checks.that(self.n_best == 1, "n_best", "must be 1")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class Averaging:
    """Section 6.1: the average of the last checkpoints, evenly spaced in time."""

    last: int = 5
    """The number of checkpoints: 5 for base, 20 for big."""
    interval: float = 1 / 72
    """The interval between checkpoints, as a fraction of the run: for base, the paper's ten minutes
    of twelve hours. If `experiment.checkpoint` sets `every_steps` or `every_minutes`, those apply
    unless `--minutes` is given."""
    after: float = 0.0
    """Skip checkpoints before this fraction of the steps. In a short run, early checkpoints would
    make the average worse."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "last")
        checks.fraction("after")
        possible = 0 < self.interval * self.last <= 1
        checks.that(possible, "interval", f"times last = {self.last} must be above 0 and at most 1")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The content of a TOML file in `transept/apps/recipes/`."""

    title: str
    """A one-line description."""
    source_language: str
    """The source language, such as `en`."""
    target_language: str
    """The target language."""
    experiment: Experiment
    """The model and its training. The corpora come from `texts` and `dev`."""
    texts: tuple[RecipeText, ...]
    """The training text."""
    dev: tuple[TextPair, ...]
    """The text for validation during training."""
    tests: tuple[TestSet, ...]
    """The test sets to translate and score."""
    dataset: DatasetName | None = None
    """The public corpus of `transept data fetch` that contains the text, if any."""
    sentences: SentencesConfig | None = None
    """Sentences that the recipe writes itself, instead of a data directory or a public corpus."""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    """The subword vocabulary (section 5.1)."""
    cleaning: Cleaning = field(default_factory=Cleaning)
    """Which sentence pairs are removed."""
    variation: Variation | None = None
    """Random changes to the training pairs. The vocabulary then has masks. None: no changes."""
    translation: TextTranslation = field(default_factory=TextTranslation)
    """The search of the translators that write training text."""
    average: Averaging = field(default_factory=Averaging)
    """Which checkpoints are averaged (section 6.1)."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """The search for the test sets (section 6.1)."""
    package: Literal["int8", "bf16", "fp32", "none"] = "int8"
    """The precision of the packaged model. none: omit the stage `package`."""
    limits: str = ""
    """The limitations of the model, for its model card."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        for key in ("texts", "tests"):
            names = [each.name for each in getattr(self, key)]
            checks.that(len(set(names)) == len(names), key, "two of them have the same name")
        taken = any(text.name == DEV for text in self.texts)
        checks.that(not taken, "texts", f"one of them has the name of the development set, {DEV}")
        known = {self.source_language, self.target_language} == {"en", "de"}
        generated = any(text.generated for text in self.texts)
        what = "includes generated text, which exists only in English and German; remove it"
        checks.that(known or not generated, "texts", what)
        for key in ("texts", "dev"):
            checks.that(bool(getattr(self, key)), key, "names no files")
        checks.that(
            not self.experiment.data.train,
            "experiment",
            "contains corpora; remove them: `texts` lists them",
        )
        checks.done()

    @property
    def stages(self) -> tuple[StageName, ...]:
        """The stages that apply to this recipe, in order."""
        applies = {
            "translate": any(text.translator for text in self.texts),
            "package": self.package != "none",
        }
        return tuple(name for name in STAGES if applies.get(name, True))

    def within(self, minutes: float | None) -> "Recipe":
        """The same recipe with its checkpoint interval for this number of minutes.

        Only the last checkpoints, which will be averaged, are written: writing one takes seconds.

        Args:
            minutes: The duration of training. None: until the last step.
        """
        share, last = self.average.interval, self.average.last
        checkpoint = self.experiment.checkpoint
        checkpoint = replace(checkpoint, every_share=share, keep=max(last, checkpoint.keep))
        if minutes is not None:
            checkpoint = replace(
                checkpoint,
                every_minutes=minutes * share,
                after_minutes=max(0.0, minutes - (last - 1) * minutes * share),
            )
        return replace(self, experiment=replace(self.experiment, checkpoint=checkpoint))

    def trained_for(self, steps: int) -> "Recipe":
        """The same recipe with this number of steps. Intervals are scaled in proportion."""
        whole, checkpoint = self.experiment, self.experiment.checkpoint

        def scaled(interval: int) -> int:
            return max(1, round(interval * steps / whole.training.max_steps))

        if checkpoint.every_steps is not None:
            checkpoint = replace(checkpoint, every_steps=scaled(checkpoint.every_steps))
        validation = replace(whole.validation, every_steps=scaled(whole.validation.every_steps))
        if validation.bleu_every_steps is not None:
            validation = replace(validation, bleu_every_steps=scaled(validation.bleu_every_steps))
        experiment = replace(
            whole,
            training=replace(whole.training, max_steps=steps),
            validation=validation,
            checkpoint=checkpoint,
        )
        return replace(self, experiment=experiment)


def names() -> list[str]:
    """The names of the bundled recipes."""
    return sorted(path.stem for path in SHELF.glob("*.toml"))


def find(name: str) -> Path:
    """The file of a recipe, given the name of a bundled recipe or a path."""
    path = Path(name)
    if path.suffix == ".toml":
        return path
    if name not in names():
        cure = did_you_mean(name, names())
        raise ConfigError(f"{name}: is neither a recipe nor the path of a .toml file; {cure}")
    return SHELF / f"{name}.toml"


def load(name: str, overrides: tuple[str, ...] = ()) -> Recipe:
    """Load a recipe by name or path, with overrides."""
    path = find(name)
    keys = config.keys(path)
    if "model" in keys and "experiment" not in keys:
        raise ConfigError(
            f"{path}: is the config of an experiment, not a recipe; `transept train {path}` "
            f"trains it, `transept info {path}` prints it"
        )
    inner = {each.name for each in dataclasses.fields(Experiment)}
    for override in overrides:
        if override.partition("=")[0].partition(".")[0].strip() in inner:
            raise ConfigError(
                f"command line ({override}): changes the recipe's experiment; write "
                f"experiment.{override.strip()}"
            )
    return _with_languages(config.load(Recipe, path, overrides))


def _with_languages(loaded: Recipe) -> Recipe:
    """A recipe with its languages in place of `{source}` and `{target}`."""

    def named(text: str) -> str:
        source, target = loaded.source_language, loaded.target_language
        return text.replace("{source}", source).replace("{target}", target)

    def file(path: Path | None) -> Path | None:
        return None if path is None else Path(named(str(path)))

    def files(pair: Any) -> Any:
        return replace(pair, source=file(pair.source), target=file(pair.target))

    texts = (
        replace(files(text), translator=tuple(map(named, text.translator))) for text in loaded.texts
    )
    dev, tests = (tuple(map(files, pairs)) for pairs in (loaded.dev, loaded.tests))
    return replace(loaded, texts=tuple(texts), dev=dev, tests=tests)


def fingerprint(*parts: Any) -> str:
    """The SHA-256 of configs and their values."""
    tables = [config.as_table(part) if dataclasses.is_dataclass(part) else part for part in parts]
    return hashlib.sha256(json.dumps(tables, sort_keys=True, default=str).encode()).hexdigest()
