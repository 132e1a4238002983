"""What a demo is about. No torch here."""

from dataclasses import dataclass
from pathlib import Path

from transept.apps.recipes.claim import claim
from transept.config import Checks

FILE = "demo.toml"
HELD_OUT = 1000
"""Sentences of dev, and of test, at most."""
MOST_OWN_PAIRS = 1_000_000
"""More cannot be looked at within minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoPlan:
    """What stays the same for as long as a demo's directory lives."""

    data: Path | None = None
    """A folder with custom files. None: the built-in sentences."""
    source_language: str = "en"
    """What is translated: the suffix of its files."""
    target_language: str = "de"
    """What it is translated into."""
    pairs: int = 80_000
    """Sentence pairs to train on, at most."""
    seed: int = 1
    """Of the training, and of the pairs that are held out from custom files."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(100, "pairs")
        checks.at_least(0, "seed")
        checks.done()

    def keep_in(self, directory: Path) -> None:
        """Write it down; or refuse to mix it with another that was begun there."""
        claim(directory, FILE, self, kind="demo", argument="output")
