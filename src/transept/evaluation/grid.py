"""Settings of the search tried one after another, and the best of them by sacreBLEU."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from transept.config import did_you_mean
from transept.errors import ConfigError, Problem
from transept.evaluation.scores import Score

Settings = Mapping[str, int | float]

NUMBERS: Mapping[str, type[int] | type[float]] = {
    "beam_size": int,
    "length_penalty": float,
    "max_length_factor": float,
    "max_length_extra": int,
}
"""The settings that may be varied, each with the type of its numbers."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What some settings scored, and how long decoding with them took."""

    settings: Settings
    score: Score
    seconds: float


@dataclass(frozen=True)
class Grid:
    """Every combination of some values."""

    values: Mapping[str, Sequence[int | float]]

    @classmethod
    def parse(cls, words: Sequence[str]) -> "Grid":
        """Read `beam_size=1,4,8 length_penalty=0,0.6,1`, in one word or several.

        A setting may be named twice, as in `beam_size=1 beam_size=4`: all its values are tried.
        """
        values: dict[str, Sequence[int | float]] = {}
        problems = []
        for part in " ".join(words).split():
            name, _, listed = part.partition("=")
            key = name.lstrip("-").replace("-", "_")
            if key not in NUMBERS:
                problems.append(
                    Problem("grid", f"{name!r} is unknown; {did_you_mean(key, NUMBERS)}")
                )
                continue
            try:
                numbers = [NUMBERS[key](value) for value in listed.split(",")]
                values[key] = [*values.get(key, ()), *numbers]
            except ValueError:
                example = f"{key}=1,4,8" if NUMBERS[key] is int else f"{key}=0,0.6,1"
                problems.append(Problem("grid", f"{part!r} is no list of numbers like {example!r}"))
        if not (values or problems):
            problems.append(Problem("grid", "needs settings to try, such as beam_size=1,4,8"))
        if problems:
            raise ConfigError(problems)
        return cls(values)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __iter__(self) -> Iterator[Settings]:
        for combination in itertools.product(*self.values.values()):
            yield dict(zip(self.values, combination, strict=True))


def best(trials: Sequence[Trial]) -> Trial:
    """The highest score; of equal ones, the first."""
    return max(trials, key=lambda trial: trial.score.value)
