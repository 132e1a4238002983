"""The length penalty of Wu et al. (2016), which the paper takes over."""


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^α, where |Y| counts the end symbol."""
    return float(((5 + length) / 6) ** alpha)
