"""What can be asked of a parse, and what comes back. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from transept.api.config import check_longest, given
from transept.config import Checks, structure
from transept.decoding.config import SearchConfig
from transept.errors import DataError
from transept.progress import Watch, no_progress
from transept.tasks.parsing.bounds import MAX_UNARY
from transept.tasks.parsing.linearisation import Fault
from transept.text.trees import Tree

TreeSearch = Literal["trees", "none"]


@dataclass(frozen=True, kw_only=True)
class ParseConfig(SearchConfig):
    """Section 6.3: beam 21, α = 0.3, at most 300 symbols more than the input."""

    beam_size: int = 21
    """Hypotheses kept alive; 1 is greedy search."""
    length_penalty: float = 0.3
    """The α of Wu et al.: score = log P(Y|X) / ((5 + |Y|) / 6)^α."""
    max_length_extra: int = 300
    """… plus so many symbols. Both count the end symbol."""
    max_unary: int = MAX_UNARY
    """How many brackets there may be over the same words."""
    max_source_length: int | None = None
    """The longest sentence, in tokens with the end symbol; unless given, the longest that the
    model was trained on."""

    def __post_init__(self) -> None:
        SearchConfig.__post_init__(self)
        checks = Checks(self)
        checks.at_least(1, "max_unary")
        check_longest(checks, self.max_source_length)
        checks.done()


class ParseOptions(TypedDict, total=False):
    """The keywords of `Parser.parse`: the fields of `ParseConfig`, and more."""

    beam_size: int
    length_penalty: float
    n_best: int
    max_length_factor: float
    max_length_extra: int
    max_unary: int
    max_source_length: int | None
    constraint: TreeSearch
    tags: Sequence[Sequence[str]] | None
    watch: Watch


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedParseOptions:
    """What `Parser.parse` was asked for, checked."""

    config: ParseConfig
    constraint: TreeSearch = "trees"
    tags: Sequence[Sequence[str]] | None = None
    watch: Watch = no_progress

    @classmethod
    def of(cls, options: ParseOptions) -> "CheckedParseOptions":
        """Check what is to be a config, and pass the rest on."""
        options = options.copy()
        constraint, tags = options.pop("constraint", "trees"), options.pop("tags", None)
        watch = options.pop("watch", no_progress)
        config = structure(ParseConfig, given(options))
        return cls(config=config, constraint=constraint, tags=tags, watch=watch)


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
