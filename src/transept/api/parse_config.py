"""What can be asked of a parse. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from transept.api.config import check_longest, given
from transept.config import Checks, structure
from transept.decoding.config import SearchConfig
from transept.progress import Watch, no_progress
from transept.tasks.parsing.bounds import MAX_UNARY

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
