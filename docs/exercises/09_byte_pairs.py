"""Exercise 9: one step of byte-pair encoding (section 5.1).

A vocabulary of subwords is learned from text. At first each word is a tuple of characters. Each
step finds the most frequent pair of adjacent symbols and merges it, everywhere, into one symbol.
Frequent words become one symbol after some steps, rare words stay in pieces.

`words` contains each word with its number of occurrences in the text. `▁` is the space before a
word:

    {("▁", "b", "a", "n"): 10, ("▁", "c", "a", "b"): 3}

Hint: a pair of a word that occurs ten times occurs ten times. In a word such as (a, a, a), the pair
(a, a) is merged once, from left to right: (aa, a).
"""

from collections import Counter

Words = dict[tuple[str, ...], int]


def most_frequent_pair(words: Words) -> tuple[str, str]:
    """Return the pair of adjacent symbols that occurs most often in the text."""
    raise NotImplementedError


def merge(words: Words, pair: tuple[str, str]) -> Words:
    """Return the words with each occurrence of the pair merged into one symbol."""
    raise NotImplementedError
