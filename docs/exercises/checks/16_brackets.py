"""Check of exercise 16."""

import random

from comparing import must

from transept.tasks.parsing.linearisation import fault_of, linearise
from transept.tasks.parsing.repair import repair

CASES = [
    ("(S (NP XX XX )NP (VP XX )VP )S", 3),
    ("(S (NP XX XX", 2),
    ("(S (NP (PP XX )NP XX )S", 2),
    ("(S XX )VP XX )S", 2),
    ("(S XX XX XX XX )S", 2),
    ("(S (NP XX )NP )S", 3),
    ("(S (NP )NP (VP XX )VP )S", 1),
    ("(S (NP (NN )NN )NP XX )S", 1),
    ("(S (NP XX )NP )S (VP XX )VP", 2),
    ("(S (NP XX )S XX )NP", 2),
]


def check(student):
    """Typical sequences first, then random ones."""
    chance = random.Random(1)
    parts = ["XX", "XX", "(NP", ")NP", "(VP", ")VP"]
    random_cases = []
    for _ in range(200):
        symbols = chance.choices(parts, k=chance.randint(1, 12))
        if "XX" in symbols:
            symbols.insert(chance.randint(1 + symbols.index("XX"), 12), ")S")
        random_cases.append((" ".join(["(S", *symbols]), chance.randint(1, 5)))
    for text, n_words in (*CASES, *random_cases):
        given = text.split()
        found = student.repair(list(given), n_words)
        must(isinstance(found, list), f"the result is of type {type(found).__name__}, not a list")
        said = f"{text!r} for {n_words} word{'s' * (n_words > 1)} becomes {' '.join(found)!r}"
        fault = fault_of(found, n_words)
        must(fault is None, f"{said}: {fault.value if fault else ''}")
        expected = linearise(repair(given, ["word"] * n_words))
        must(found == expected, f"{said}, not {' '.join(expected)!r}")
