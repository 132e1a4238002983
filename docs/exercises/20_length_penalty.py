"""Exercise 20: a length penalty with which beam search finds an output (section 6.1).

Each additional token lowers the probability of an output, so the most probable outputs are too
short. The paper ranks outputs by log P(Y|X) / lp(Y), with the length penalty of Wu et al. (2016):

    lp(Y) = ((5 + |Y|) / 6)^α        |Y| counts the end symbol

A model has four outputs. `.` is the end symbol.

    output           |Y|    log P
    n.                 2    −1.00
    nein.              5    −1.15
    neinneinnein.     13    −2.00
    ja.                3    −1.91

Write the penalty, and choose an α with which the package's beam search finds `nein.`. The check
runs that search with your penalty instead of the package's.

Hint: compare the scores of two outputs. For which α are they equal? log P is negative.
"""

ALPHA = 0.0
"""Your choice of α."""


def length_penalty(length: int, alpha: float) -> float:
    """Return lp(Y) for an output of `length` tokens, the end symbol included."""
    raise NotImplementedError
