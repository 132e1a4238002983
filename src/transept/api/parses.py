"""Options and results of parsing. Does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from transept.api.config import check_max_source_length, given
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
    """The beam size; 1 is greedy search."""
    length_penalty: float = 0.3
    """The α of Wu et al.: score = log P(Y|X) / ((5 + |Y|) / 6)^α."""
    max_length_extra: int = 300
    """Maximum output length = FACTOR × input length + EXTRA, in symbols including EOS."""
    max_unary: int = MAX_UNARY
    """The maximum number of nested brackets over the same words."""
    max_source_length: int | None = None
    """Maximum tokens per sentence, including the end symbol. Default: the longest that the model
    was trained on."""

    def __post_init__(self) -> None:
        SearchConfig.__post_init__(self)
        checks = Checks(self)
        checks.at_least(1, "max_unary")
        check_max_source_length(checks, self.max_source_length)
        checks.done()


class ParseOptions(TypedDict, total=False):
    """The keyword arguments of `Parser.parse`: `ParseConfig` and more."""

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
    """The validated arguments of `Parser.parse`."""

    config: ParseConfig
    constraint: TreeSearch = "trees"
    tags: Sequence[Sequence[str]] | None = None
    watch: Watch = no_progress

    @classmethod
    def of(cls, options: ParseOptions) -> "CheckedParseOptions":
        """Validate options."""
        options = options.copy()
        constraint, tags = options.pop("constraint", "trees"), options.pop("tags", None)
        watch = options.pop("watch", no_progress)
        config = structure(ParseConfig, given(options))
        return cls(config=config, constraint=constraint, tags=tags, watch=watch)


@dataclass(frozen=True, slots=True)
class ParseOutput:
    """One parse tree of a sentence."""

    tree: Tree
    score: float
    """The score for ranking: log P(Y|X) / lp(Y)."""
    log_probability: float
    """log P(Y|X), natural logarithm."""
    n_symbols: int
    """The number of symbols of the linearised tree, including the end symbol."""
    fault: Fault | None = None
    """Why the model's output was not a tree and had to be repaired, or None."""

    @property
    def confidence(self) -> float:
        """The mean log-probability per symbol. 0 is certainty."""
        return self.log_probability / self.n_symbols


@dataclass(frozen=True, slots=True)
class Parse:
    """The parse trees of one sentence.

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
    """Best first; empty if the sentence has no words."""

    def __str__(self) -> str:
        """The best tree in brackets, on one line."""
        return str(self.outputs[0].tree) if self.outputs else ""

    @property
    def best(self) -> ParseOutput:
        """The best output."""
        if not self.outputs:
            raise DataError("a sentence without words has no tree; omit it")
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
