"""Model cards: training data and its licences, scores, and limits of a model.

A card is stored in the model's directory as `card.toml`, and in readable form as README.md. This
module does not import torch.
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
    """A source of training data."""

    name: str
    """Its name."""
    licence: str
    """Its licence."""
    attribution: str
    """The attribution that the licence requires."""
    pairs: int
    """The number of sentence pairs used."""

    def __str__(self) -> str:
        thanks = f" Attribution: {self.attribution}." if self.attribution else ""
        return f"{self.name}: {self.pairs:,} pairs. Terms: {self.licence}.{thanks}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """A score of the stored (quantized) model."""

    test: str
    """The test set."""
    sentences: int
    """The number of its sentences."""
    name: str
    """The name of the convention."""
    value: float
    """The score."""
    signature: str
    """The signature, with everything needed to compute the score again."""

    def __str__(self) -> str:
        where = f"{self.test}, {self.sentences:,} sentences"
        return f"{where}: {self.name} {self.value:.1f} (`{self.signature}`)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """The contents of `card.toml`."""

    title: str
    """A title."""
    source_language: str
    """The language of the input."""
    target_language: str
    """The language of the output."""
    licence: str
    """The licence of the weights."""
    recipe: str
    """The recipe that trains it."""
    commit: str
    """The commit of the code that trained it."""
    steps: int
    """The number of training steps."""
    parameters: int
    """The number of parameters."""
    precision: str
    """The precision in which they are stored."""
    data: tuple[Source, ...]
    """The training data."""
    results: tuple[Result, ...]
    """The scores of the stored model."""
    limits: str
    """Known limits and unsuitable uses."""

    @classmethod
    def load(cls, directory: Path) -> "Card | None":
        """Load a model's card, or return None if it has none."""
        path = directory / CARD
        if not path.exists():
            return None
        try:
            return config.load(cls, path)
        except ConfigError as error:
            raise CheckpointError(f"{path}: is not a model card: {error}") from error

    def markdown(self) -> str:
        """The card as Markdown."""
        lines = [
            f"# {self.title}",
            "",
            f"Translates {self.source_language} to {self.target_language}. "
            f"{self.parameters:,} parameters, stored in {self.precision}. Licence: {self.licence}.",
            f"Trained by `transept recipe run {self.recipe}` at commit {self.commit}, "
            f"{self.steps:,} steps.",
            "",
            "## Data",
            "",
            *(f"- {source}" for source in self.data),
            "",
            "## Scores",
            "",
            "The scores are those of the stored weights.",
            "",
            *(f"- {result}" for result in self.results),
            "",
            "## Limits",
            "",
            self.limits,
        ]
        return "\n".join(lines) + "\n"
