"""A model's card: what it learnt from and under which terms, how good it is, what it cannot do.

It lies in the model's directory as `card.toml`; README.md beside it is the same for people. No
torch here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from transept import config
from transept.errors import CheckpointError, ConfigError

CARD: Final = "card.toml"
README: Final = "README.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Text that a model learnt from."""

    name: str
    """What it is called."""
    licence: str
    """Its terms."""
    attribution: str
    """Whom they ask to be named."""
    pairs: int
    """Sentence pairs that were learnt from."""

    def __str__(self) -> str:
        thanks = f" Attribution: {self.attribution}." if self.attribution else ""
        return f"{self.name}: {self.pairs:,} pairs. Terms: {self.licence}.{thanks}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A score of the model as it is stored."""

    test: str
    """The test set."""
    sentences: int
    """How many it has."""
    name: str
    """The convention's name."""
    value: float
    """The score."""
    signature: str
    """All that is needed to count it again."""

    def __str__(self) -> str:
        where = f"{self.test}, {self.sentences:,} sentences"
        return f"{where}: {self.name} {self.value:.1f} (`{self.signature}`)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """What `card.toml` says."""

    title: str
    """A line for people."""
    source_language: str
    """What it reads."""
    target_language: str
    """What it writes."""
    licence: str
    """Of the weights."""
    recipe: str
    """What `transept recipe run` makes it by."""
    commit: str
    """The code that trained it."""
    steps: int
    """Updates of the weights."""
    parameters: int
    """Weights."""
    precision: str
    """In what they are stored."""
    data: tuple[Source, ...]
    """What it learnt from."""
    results: tuple[Result, ...]
    """How good it is, as it is stored."""
    limits: str
    """What it cannot do, and should not be used for."""

    @classmethod
    def load(cls, directory: Path) -> "Card | None":
        """A model's card; None where it has none."""
        path = directory / CARD
        if not path.exists():
            return None
        try:
            return config.load(cls, path)
        except ConfigError as error:
            raise CheckpointError(f"{path}: is not a model card: {error}") from error

    def markdown(self) -> str:
        """The card for people."""
        lines = [
            f"# {self.title}",
            "",
            f"Translates {self.source_language} to {self.target_language}. "
            f"{self.parameters:,} weights, stored in {self.precision}; {self.licence}.",
            f"Made by `transept recipe run {self.recipe}` at {self.commit}, {self.steps:,} steps.",
            "",
            "## Data",
            "",
            *(f"- {source}" for source in self.data),
            "",
            "## Scores",
            "",
            "Of the weights as they are stored here.",
            "",
            *(f"- {result}" for result in self.results),
            "",
            "## Limits",
            "",
            self.limits,
        ]
        return "\n".join(lines) + "\n"
