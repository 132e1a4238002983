"""Exceptions and their exit codes.

    TranseptError                1   any other error
    ├── ConfigError              2   an invalid config file, key or argument
    ├── DataError                3   input text, ids or corpora that cannot be used
    │   ├── VocabularyError      3   a tokenizer, or ids that do not belong to it
    │   └── TooLongError         3   a sentence with too many tokens
    ├── CheckpointError          4   a model directory that is damaged or does not fit
    ├── DecodingError            1
    ├── ServingError             1
    ├── StoppedError            75   work that was stopped and can be resumed
    └── RankError                    another process of the same job failed; has its exit code

A message says what is wrong, where (file, key, line), and what to do about it. The command line
prints it without a traceback unless `--debug` is given.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

RESUMABLE = 75
"""The exit code of work that was stopped and can be resumed."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument in a message: printed as `restart` in Python, --restart on the command line."""

    name: str


class TranseptError(Exception):
    """The base class of all errors that transept raises deliberately.

    Its arguments are the parts of the message, strings and `Argument`s, which are concatenated.

    Example:
        >>> try:
        ...     transept.ModelConfig.preset("bsae")
        ... except transept.TranseptError as error:
        ...     print(error, error.exit_code)
        preset: unknown preset 'bsae'; did you mean 'base'? 2
    """

    exit_code: int = 1

    def message(self, named: Callable[[str], str]) -> str:
        """The message, with arguments formatted by `named`."""
        parts = (named(p.name) if isinstance(p, Argument) else str(p) for p in self.args)
        return "".join(parts)

    def __str__(self) -> str:
        return self.message(lambda name: f"`{name}`")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a config: the dotted key, what is wrong with it, and the file that set it."""

    key: str
    what: str
    origin: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.origin, self.key, self.what) if part)

    def below(self, parent: str) -> "Problem":
        """The same problem with the key prefixed by that of the enclosing table."""
        return replace(self, key=f"{parent}.{self.key}" if self.key else parent)


class ConfigError(TranseptError):
    """An invalid config, with all its problems."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem] | str, *parts: str | Argument) -> None:
        if isinstance(problems, str):
            super().__init__(problems, *parts)
            self.problems = [Problem("", str(self))]
        else:
            self.problems = list(problems)
            super().__init__("\n".join(str(problem) for problem in self.problems))


@contextmanager
def keys_below(table: str) -> Iterator[None]:
    """Prefix the keys of any ConfigError raised inside with `table`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(
            [one.below(table) if one.key else one for one in error.problems]
        ) from error


class DataError(TranseptError):
    """Input that cannot be used: text, ids, a corpus."""

    exit_code = 3


class VocabularyError(DataError):
    """A tokenizer that cannot be used, or ids that do not belong to it."""


class TooLongError(DataError):
    """A sentence with too many tokens."""

    def __init__(self, number: int, what: str, enough: int | None, cure: str) -> None:
        """Create an error for one of several texts.

        Args:
            number: The number of the text, from 1.
            what: The problem: the length and the limit.
            enough: The limit that would suffice. None if the model has too few positions.
            cure: Advice for users of the Python API.
        """
        super().__init__(f"text {number}: {what}; {cure}")
        self.number, self.what, self.enough, self.cure = number, what, enough, cure
        self.all: Sequence[TooLongError] = (self,)
        """The errors of all texts, if all were checked. This error is the first."""


class CheckpointError(TranseptError):
    """A model directory that is damaged, incomplete or made for something else."""

    exit_code = 4


class DecodingError(TranseptError):
    """A search that cannot be done as requested."""


class ServingError(TranseptError):
    """A server that cannot start or cannot answer."""


class StoppedError(TranseptError):
    """Work that was stopped. Completed work is kept."""

    exit_code = RESUMABLE


class RankError(TranseptError):
    """One of several cooperating processes failed, so all must stop."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
