"""Attention between two sentences, drawn with block characters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transept.api.transducer import Transducer

SHADES = " ░▒▓█"
"""Shades for fifths of the weight: the first below 0.2, the last from 0.8."""


class WordAttention(NamedTuple):
    """Attention weights from target words to source words."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float64]
    """[target, source]. A row sums to 1 minus the weight of the end-of-sentence token."""


def attend(transducer: Transducer, source: str, target: str) -> WordAttention:
    """The encoder-decoder attention of the last layer between words, averaged over its heads.

    Attention to a word is summed over its subwords. Attention from a word is averaged over them.
    """
    cross = transducer.attend(source, target).joined().cross
    weights = cross.weights[-1].mean(dim=0).double().numpy()
    # The last token of either side is the end of the sentence.
    return WordAttention(
        list(cross.keys.words[:-1]), list(cross.queries.words[:-1]), weights[:-1, :-1]
    )


def draw_attention(attention: WordAttention, width: int = 80) -> list[str]:
    """Lines of at most `width` characters: a row per target word, a shaded cell per source word.

    If the source is too long for one line, it continues in another map below.
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
    """Split words of these lengths into ranges that fit into a width."""
    bands, start, used = [], 0, 0
    for place, length in enumerate(lengths):
        if used and used + length > width:
            bands.append((start, place))
            start, used = place, 0
        used += length + 1
    return [*bands, (start, len(lengths))]


def _shade(weight: float) -> str:
    return SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]
