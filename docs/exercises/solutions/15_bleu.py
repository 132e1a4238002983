"""Solution of exercise 15. In the package: `transept.evaluation.bleu`."""

import math
from collections import Counter


def bleu(translations: list[str], references: list[str]) -> float:
    """Return the BLEU score of a corpus, 0 to 100, with one reference per sentence."""
    found, total = [0] * 4, [0] * 4
    for translation, reference in zip(translations, references, strict=True):
        for n in range(1, 5):
            ours, theirs = ngrams(translation, n), ngrams(reference, n)
            found[n - 1] += (ours & theirs).total()
            total[n - 1] += ours.total()
    if not all(found):
        return 0.0
    c, r = len(" ".join(translations).split()), len(" ".join(references).split())
    brevity = min(1.0, math.exp(1 - r / c))
    logs = [math.log(part / whole) for part, whole in zip(found, total, strict=True)]
    return 100 * brevity * math.exp(sum(logs) / 4)


def ngrams(sentence: str, n: int) -> Counter[tuple[str, ...]]:
    """Count the sequences of n words."""
    words = sentence.split()
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
