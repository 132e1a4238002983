"""Solution of exercise 9. In the package: sentencepiece, in `transept.text.training`."""

from collections import Counter
from itertools import pairwise

Words = dict[tuple[str, ...], int]


def most_frequent_pair(words: Words) -> tuple[str, str]:
    """Return the pair of adjacent symbols that occurs most often in the text."""
    counts: Counter[tuple[str, str]] = Counter()
    for word, n in words.items():
        for pair in pairwise(word):
            counts[pair] += n
    return counts.most_common(1)[0][0]


def merge(words: Words, pair: tuple[str, str]) -> Words:
    """Return the words with each occurrence of the pair merged into one symbol."""
    merged = {}
    for word, n in words.items():
        symbols: list[str] = []
        for symbol in word:
            if symbols and (symbols[-1], symbol) == pair:
                symbols[-1] += symbol
            else:
                symbols.append(symbol)
        merged[tuple(symbols)] = n
    return merged
