"""Chance that is the same under every version of Python and on every machine."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Choices that follow from a seed.

    They are all made from `random()`: it is the one method of `random.Random` whose numbers
    Python promises never to change.
    """

    def __init__(self, seed: int | str) -> None:
        self.roll = random.Random(seed).random

    def pick(self, menu: Sequence[T]) -> T:
        """One of them, all alike."""
        return menu[int(self.roll() * len(menu))]

    def happens(self, probability: float) -> bool:
        """True so often."""
        return self.roll() < probability
