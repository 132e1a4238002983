"""A kind of fault: what happens, how often, and what is promised."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.faults.laboratory import Bench, Laboratory

Form = Literal["short", "long"]
Cases = Callable[[Laboratory, random.Random, Form], Sequence[int]]


def always() -> None:
    """Nothing stands in the way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One line of the score."""

    name: str
    does: str
    promise: str
    happen: Callable[[Bench], None]
    """Let it happen; raise `BrokenError` where the promise is not kept."""
    cases: Cases
    """Which cases of it there are, by number: each is the same for the same seed."""
    unavailable: Callable[[], str | None] = always
    """Why it cannot happen on this machine."""


def times(short: int, long: int) -> Cases:
    """So many cases."""
    return lambda lab, chance, form: range(short if form == "short" else long)


def drawn(total: Callable[[Laboratory], int], short: int) -> Cases:
    """Every case there is; in the short form some of them, drawn by chance."""

    def cases(lab: Laboratory, chance: random.Random, form: Form) -> Sequence[int]:
        n = total(lab)
        return range(n) if form == "long" or n <= short else sorted(chance.sample(range(n), short))

    return cases
