"""Attention between two sentences, drawn with characters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transept.api.transducer import Transducer

SHADES = " ░▒▓█"
"""Less than a fifth of a row's attention is the first; four fifths or more the last."""


class WordAttention(NamedTuple):
    """How much each target word looked at each source word while it was written."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float64]
    """[target, source]. A row sums to 1, less what the end of the sentence got."""


def attend(transducer: Transducer, source: str, target: str) -> WordAttention:
    """The last layer's encoder-decoder attention, the mean of its heads, word by word.

    A word of several pieces is given the sum of what they are given, and gives the mean of what
    they give.
    """
    cross = transducer.attend(source, target).joined().cross
    weights = cross.weights[-1].mean(dim=0).double().numpy()
    # The last of either side is the end symbol.
    return WordAttention(
        list(cross.keys.words[:-1]), list(cross.queries.words[:-1]), weights[:-1, :-1]
    )


def draw_attention(attention: WordAttention, width: int = 80) -> list[str]:
    """Lines of at most `width` characters: a row for each target word, shades beneath the source.

    Where the source is too long for one line, it continues in another picture below.
    """
    margin = max(map(len, attention.target))
    lines: list[str] = []
    for start, end in _bands([len(word) for word in attention.source], width - margin - 2):
        words = attention.source[start:end]
        lines += [""] if lines else []
        lines.append(" " * (margin + 2) + " ".join(words))
        for word, weights in zip(attention.target, attention.weights, strict=True):
            cells = [
                _shade(weight) * len(above)
                for weight, above in zip(weights[start:end], words, strict=True)
            ]
            lines.append(f"{word:>{margin}}  {' '.join(cells)}".rstrip())
    return lines


def _bands(lengths: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Where to cut words of these lengths so that each part fits into a width."""
    bands, start, used = [], 0, 0
    for place, length in enumerate(lengths):
        if used and used + length > width:
            bands.append((start, place))
            start, used = place, 0
        used += length + 1
    return [*bands, (start, len(lengths))]


def _shade(weight: float) -> str:
    return SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]
