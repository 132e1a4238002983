"""The recipe file: its text, cleaning, vocabulary, training, search and scores. No torch."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from transept import config
from transept.config import Checks, did_you_mean
from transept.data.cleaning import Cleaning
from transept.data.fetching.datasets import DatasetName
from transept.decoding.config import SearchConfig
from transept.errors import ConfigError
from transept.experiment import Experiment
from transept.text.tokenizer import Kind

SHELF: Final = Path(__file__).parent

DEV: Final = "dev"
"""What the corpus that validation looks at is called."""
StageName = Literal["prepare", "train", "average", "decode", "score", "report"]
STAGES: Final[tuple[StageName, ...]] = get_args(StageName)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPair:
    """Two files, line by line translations of each other; also .gz, .xz and .zst."""

    source: Path
    """The file of source sentences, below the data's directory."""
    target: Path
    """The file of their translations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeText(TextPair):
    """Text to learn from, and what its owners ask for."""

    name: str
    """What it is called in reports; its corpus lies in a directory of this name."""
    licence: str
    """The terms under which it can be used."""
    attribution: str = ""
    """Whom a model that learnt from it must name."""
    weight: float = 1.0
    """How often an epoch takes each pair."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TestSet(TextPair):
    """Text that is translated and scored, and never learnt from."""

    name: str
    """What it is called in reports."""
    perplexity: bool = False
    """Whether the references' perplexity is reported too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SentencesConfig:
    """Text that the recipe itself writes as train, dev and test into its work directory."""

    folder: Path | None = None
    """A folder with custom files. None: the bundled English and German sentences."""
    pairs: int = 80_000
    """Sentence pairs to train on, at most."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(100, "pairs")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """How the joint vocabulary is learnt; its size is the model's `vocab_size`."""

    kind: Kind = "bpe"
    """Byte-pair encoding, or a unigram language model, which is similar to word pieces."""
    max_lines: int | None = None
    """The number of lines to learn from at most, drawn evenly. Default: the kind's limit."""
    min_size: int | None = None
    """Where there is too little text for `vocab_size` pieces, learn fewer, but at least so many.
    None: that is an error."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Averaging:
    """Section 6.1: the mean of the last checkpoints, evenly spaced in time."""

    last: int = 5
    """How many: 5 for base, 20 for big."""
    interval: float = 1 / 72
    """Their distance, as a share of the run: the paper's ten minutes of base's twelve hours. Where
    `experiment.checkpoint` sets `every_steps` or `every_minutes`, those count until there is a
    `--minutes`."""
    after: float = 0.0
    """Leave out checkpoints from before this share of the steps. In a training of a few steps, an
    early one would spoil the mean."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "last")
        checks.fraction("after")
        possible = 0 < self.interval * self.last <= 1
        checks.that(possible, "interval", f"times last = {self.last} must be within the run")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What a TOML file under `transept/apps/recipes/` describes."""

    title: str
    """A line for people."""
    source_language: str
    """The language that is translated: `en`."""
    target_language: str
    """The language that it is translated into."""
    experiment: Experiment
    """The network and its training; its corpora are those of `texts` and `dev`."""
    texts: tuple[RecipeText, ...]
    """What is learnt from."""
    dev: tuple[TextPair, ...]
    """What validation looks at while training."""
    tests: tuple[TestSet, ...]
    """What is translated and scored at the end."""
    dataset: DatasetName | None = None
    """The public corpus of `transept data fetch` that the text comes from, if it does."""
    sentences: SentencesConfig | None = None
    """Where the text comes from, if not from a directory of files or a public corpus."""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    """How words are cut, section 5.1."""
    cleaning: Cleaning = field(default_factory=Cleaning)
    """Which pairs are left out."""
    average: Averaging = field(default_factory=Averaging)
    """Which checkpoints make the model, section 6.1."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """How test sets are translated, section 6.1."""
    limits: str = ""
    """What a model of this recipe cannot do, for its card."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        for key in ("texts", "tests"):
            names = [each.name for each in getattr(self, key)]
            checks.that(len(set(names)) == len(names), key, "two of them have the same name")
        taken = any(text.name == DEV for text in self.texts)
        checks.that(not taken, "texts", f"one of them is called {DEV}, as the development set is")
        for key in ("texts", "dev"):
            checks.that(bool(getattr(self, key)), key, "names no files")
        checks.that(
            not self.experiment.data.train,
            "experiment",
            "names corpora; leave them out: `texts` names them",
        )
        checks.done()

    def within(self, minutes: float | None) -> "Recipe":
        """The same recipe with its interval between checkpoints for a number of minutes.

        Only the last checkpoints are written, which will be averaged: writing one takes seconds.

        Args:
            minutes: The minutes of training. None: until the last step.
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
        """The same recipe for a number of steps, with its intervals in proportion."""
        whole, checkpoint = self.experiment, self.experiment.checkpoint

        def scaled(interval: int) -> int:
            return max(1, round(interval * steps / whole.training.max_steps))

        if checkpoint.every_steps is not None:
            checkpoint = replace(checkpoint, every_steps=scaled(checkpoint.every_steps))
        experiment = replace(
            whole,
            training=replace(whole.training, max_steps=steps),
            validation=replace(whole.validation, every_steps=scaled(whole.validation.every_steps)),
            checkpoint=checkpoint,
        )
        return replace(self, experiment=experiment)


def names() -> list[str]:
    """The names of the bundled recipes."""
    return sorted(path.stem for path in SHELF.glob("*.toml"))


def find(name: str) -> Path:
    """The file of a bundled recipe by its name, or of any other recipe by its path."""
    path = Path(name)
    if path.suffix == ".toml":
        return path
    if name not in names():
        cure = did_you_mean(name, names())
        raise ConfigError(f"{name}: is not a recipe, nor the path of a .toml file; {cure}")
    return SHELF / f"{name}.toml"


def load(name: str, overrides: tuple[str, ...] = ()) -> Recipe:
    """A recipe by name or path, with changes made to it."""
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
                f"command line ({override}): is a change of the recipe's experiment; write "
                f"experiment.{override.strip()}"
            )
    return config.load(Recipe, path, overrides)


def fingerprint(*parts: Any) -> str:
    """The sha256 of configs: equal ones are equal in every key."""
    tables = [config.as_table(part) if dataclasses.is_dataclass(part) else part for part in parts]
    return hashlib.sha256(json.dumps(tables, sort_keys=True, default=str).encode()).hexdigest()
