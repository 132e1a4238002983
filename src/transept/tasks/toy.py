"""Copying and reversing: the first thing a Transformer is asked to learn, and quick to check."""

import random
from dataclasses import dataclass
from typing import Literal

from transept.text.tokenizer import BOS_ID, EOS_ID

FIRST_SYMBOL_ID = BOS_ID + 1
"""Below it lie the ids with a meaning of their own: pad, end, unknown, start."""

Pair = tuple[list[int], list[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Toy:
    """Random sequences of symbols, and what is to be made of them.

    Example:
        >>> source, target = Toy(kind="reverse").pairs(1, seed=0)[0]
        >>> target == source[-2::-1] + [1]
        True
    """

    kind: Literal["copy", "reverse"] = "copy"
    """What the target is: the source again, or its symbols from last to first."""
    n_symbols: int = 10
    """How many different symbols there are."""
    min_length: int = 1
    """The shortest sequence's symbols, the end symbol not counted."""
    max_length: int = 10
    """The longest sequence's symbols, the end symbol not counted."""

    @property
    def vocab_size(self) -> int:
        """Symbols, and the ids with a meaning of their own."""
        return FIRST_SYMBOL_ID + self.n_symbols

    def pairs(self, n: int, *, seed: int) -> list[Pair]:
        """The first `n` pairs that follow from `seed`; source and target both end in EOS."""
        chance = random.Random(seed)
        symbols = range(FIRST_SYMBOL_ID, self.vocab_size)
        pairs = []
        for _ in range(n):
            length = chance.randint(self.min_length, self.max_length)
            source = chance.choices(symbols, k=length)
            target = source if self.kind == "copy" else source[::-1]
            pairs.append(([*source, EOS_ID], [*target, EOS_ID]))
        return pairs
