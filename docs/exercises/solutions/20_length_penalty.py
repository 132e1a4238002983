"""Solution of exercise 20. In the package: `transept.decoding.step.length_penalty`.

`n.` and `nein.` have equal scores if 1.15 / 1.00 = (10/7)^α, which is α = 0.39. `nein.` and
`neinneinnein.` have equal scores if 2.00 / 1.15 = (18/10)^α, which is α = 0.94. Any α between the
two finds `nein.`, and so does the paper's 0.6.
"""

ALPHA = 0.6


def length_penalty(length: int, alpha: float) -> float:
    """Return lp(Y) for an output of `length` tokens, the end symbol included."""
    return ((5 + length) / 6) ** alpha
