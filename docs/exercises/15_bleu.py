"""Exercise 15: BLEU (section 6.1; Papineni et al., 2002).

    BLEU = 100 · BP · exp(¼ Σ log p_n),  n = 1 … 4        BP = min(1, exp(1 − r / c))

p_n is the share of all n-grams of the translations that are also in their reference. An n-gram
counts at most as often as it occurs in the reference of the same sentence. Numerators and
denominators of p_n are sums over the corpus: BLEU is not a mean over sentences. c and r are the
numbers of words in all translations and in all references. BP, the brevity penalty, lowers the
score of a corpus that is too short.

Words are separated by spaces. If some p_n is zero, BLEU is 0.

Hint: `collections.Counter` counts n-grams, and `a & b` of two counters takes the smaller counts.
"""

import math
from collections import Counter


def bleu(translations: list[str], references: list[str]) -> float:
    """Return the BLEU score of a corpus, 0 to 100, with one reference per sentence."""
    raise NotImplementedError
