"""Copying and reversing: toy tasks that a Transformer learns quickly, for checks."""

import random
from dataclasses import dataclass
from typing import Literal

from transept.text.tokenizer import BOS_ID, EOS_ID

FIRST_SYMBOL_ID = BOS_ID + 1
"""The id after the special ids: pad, end, unknown and start."""

Pair = tuple[list[int], list[int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Toy:
    """Random sequences of symbols and their targets.

    Example:
        >>> source, target = Toy(kind="reverse").pairs(1, seed=0)[0]
        >>> target == source[-2::-1] + [1]
        True
    """

    kind: Literal["copy", "reverse"] = "copy"
    """The target: the source itself, or its symbols in reverse order."""
    n_symbols: int = 10
    """The number of different symbols."""
    min_length: int = 1
    """The minimum length of a sequence, without the end symbol."""
    max_length: int = 10
    """The maximum length of a sequence, without the end symbol."""

    @property
    def vocab_size(self) -> int:
        """The number of symbols and special ids."""
        return FIRST_SYMBOL_ID + self.n_symbols

    def pairs(self, n: int, *, seed: int) -> list[Pair]:
        """Return `n` random pairs for `seed`. Source and target both end with EOS."""
        chance = random.Random(seed)
        symbols = range(FIRST_SYMBOL_ID, self.vocab_size)
        pairs = []
        for _ in range(n):
            length = chance.randint(self.min_length, self.max_length)
            source = chance.choices(symbols, k=length)
            target = source if self.kind == "copy" else source[::-1]
            pairs.append(([*source, EOS_ID], [*target, EOS_ID]))
        return pairs
