"""What can go wrong, and the exit code it ends with.

    TranseptError                1   anything that is not one of these
    ├── ConfigError              2   a file, key or argument that cannot be meant
    ├── DataError                3   input text, ids or corpora that cannot be used
    │   └── VocabularyError      3   a tokenizer, or ids that do not belong to it
    ├── CheckpointError          4   a model directory that is damaged or does not fit
    ├── DecodingError            1
    ├── ServingError             1
    ├── StoppedError            75   work that was stopped, and goes on when it is started again
    └── RankError                    another process of the same work ended: with its code

A message says what is wrong, where (file, key, line), and what to do about it. The command line
prints it without a traceback; `--debug` shows the traceback.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

RESUMABLE = 75
"""The exit code of work that was stopped, and goes on when it is started again."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a message names: `restart` in Python, --restart on the command line."""

    name: str


class TranseptError(Exception):
    """The base of every error that transept raises on purpose.

    Its arguments are the parts of the message, texts and `Argument`s, end to end.

    Example:
        >>> try:
        ...     transept.ModelConfig.preset("bsae")
        ... except transept.TranseptError as error:
        ...     print(error, error.exit_code)
        preset: unknown preset 'bsae'; did you mean 'base'? 2
    """

    exit_code: int = 1

    def message(self, named: Callable[[str], str]) -> str:
        """The message, in which `named` says what an argument is called."""
        parts = (named(p.name) if isinstance(p, Argument) else str(p) for p in self.args)
        return "".join(parts)

    def __str__(self) -> str:
        return self.message(lambda name: f"`{name}`")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a config: the dotted key, what is wrong with it, where it was said."""

    key: str
    what: str
    origin: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.origin, self.key, self.what) if part)

    def below(self, parent: str) -> "Problem":
        """The same problem, seen from the table that holds this one."""
        return replace(self, key=f"{parent}.{self.key}" if self.key else parent)


class ConfigError(TranseptError):
    """A config, with everything that is wrong with it at once."""

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
    """Let what goes wrong with keys in here be said of the table in which a user finds them."""
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


class CheckpointError(TranseptError):
    """A model directory that is damaged, incomplete or made for something else."""

    exit_code = 4


class DecodingError(TranseptError):
    """A search that was asked for something impossible."""


class ServingError(TranseptError):
    """A server that cannot start or cannot answer."""


class StoppedError(TranseptError):
    """Work that somebody stopped; what was done is kept."""

    exit_code = RESUMABLE


class RankError(TranseptError):
    """one of several processes that work together cannot go on, and so none of them can."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
