"""What comes back of parsing."""

from dataclasses import dataclass

from transept.errors import DataError
from transept.tasks.parsing.linearisation import Fault
from transept.text.trees import Tree


@dataclass(frozen=True, slots=True)
class ParseOutput:
    """One tree that the model gives."""

    tree: Tree
    score: float
    """What it is ranked by: log P(Y|X) / lp(Y)."""
    log_probability: float
    """log P(Y|X), natural."""
    n_symbols: int
    """Of the linearised tree, its end symbol counted."""
    fault: Fault | None = None
    """Why the model's output was no tree: then this is what was made of it."""

    @property
    def confidence(self) -> float:
        """The log-probability of a symbol, on average: 0 is certainty."""
        return self.log_probability / self.n_symbols


@dataclass(frozen=True, slots=True)
class Parse:
    """What the model makes of one sentence.

    Example:
        >>> parser = transept.load_parser("runs/parsing-small")
        >>> parse = parser.parse("The cat sleeps .", beam_size=2)
        >>> str(parse) == str(parse.tree)
        True
        >>> parse.confidence < 0
        True
    """

    words: tuple[str, ...]
    outputs: tuple[ParseOutput, ...]
    """Best first; none where there was no word."""

    def __str__(self) -> str:
        """The best tree in brackets, on one line."""
        return str(self.outputs[0].tree) if self.outputs else ""

    @property
    def best(self) -> ParseOutput:
        """The best output."""
        if not self.outputs:
            raise DataError("a sentence without a word has no tree; leave it out")
        return self.outputs[0]

    @property
    def tree(self) -> Tree:
        """The best tree."""
        return self.best.tree

    @property
    def score(self) -> float:
        """The best tree's score."""
        return self.best.score

    @property
    def confidence(self) -> float:
        """The best tree's confidence."""
        return self.best.confidence
