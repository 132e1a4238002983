"""Random choices that are the same on every machine and with every version of Python."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Random choices determined by a seed.

    All use `random()`, the only method of `random.Random` whose numbers Python guarantees not to
    change.
    """

    def __init__(self, seed: int | str) -> None:
        self.roll = random.Random(seed).random

    def pick(self, menu: Sequence[T]) -> T:
        """Return one element, all with the same probability."""
        return menu[int(self.roll() * len(menu))]

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.roll() < probability
