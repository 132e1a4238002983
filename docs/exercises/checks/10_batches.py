"""Check of exercise 10."""

import random
from collections import Counter

import numpy as np
from comparing import must

from transept.data.batching.layouts import Pairs, by_length
from transept.data.config import BatchConfig

BUDGET = 200


def check(student):
    """Each pair once, no batch too large, and no more padding than in the package's batches."""
    chance = random.Random(1)
    sources = [1 + int(chance.lognormvariate(2.2, 0.6)) for _ in range(400)]
    lengths = [(n, max(1, n + chance.randint(-4, 4))) for n in sources]
    found = student.batches(lengths, BUDGET)
    must(found is not None, "batches returns None: is there a return statement?")
    times = Counter(pair for batch in found for pair in batch)
    for pair in range(len(lengths)):
        must(times[pair] == 1, f"pair {pair} of 400 is in {times[pair]} batches, not in one")
    must(all(found), "a batch is empty")
    for number, batch in enumerate(found):
        for side, name in enumerate(("source", "target")):
            longest = max(lengths[pair][side] for pair in batch)
            must(
                len(batch) * longest <= BUDGET,
                f"batch {number} has {len(batch)} pairs and a longest {name} of {longest} tokens: "
                f"{len(batch) * longest} positions with padding, more than the budget of {BUDGET}",
            )
    ours, theirs = fill(found, lengths), fill(package(lengths), lengths)
    must(
        ours > 0.95 * theirs,
        f"{100 * ours:.0f} % of the positions hold a token, the rest is padding; the package's "
        f"batches have {100 * theirs:.0f} %: are the pairs of a batch of similar length?",
    )
    n = len(package(lengths))
    must(
        len(found) <= 1.2 * n,
        f"there are {len(found)} batches, and the package needs {n}: fill one before the next",
    )


def fill(found, lengths):
    """The fraction of positions that are not padding."""
    positions = 0
    for batch in found:
        sources, targets = zip(*(lengths[pair] for pair in batch), strict=True)
        positions += len(batch) * (max(sources) + max(targets))
    return sum(map(sum, lengths)) / positions


def package(lengths):
    """The batches of `layout = "by_length"`."""
    sources, targets = np.array(lengths, dtype=np.int32).T
    config = BatchConfig(
        source_tokens=BUDGET, target_tokens=BUDGET, layout="by_length", max_length=BUDGET
    )
    pairs = Pairs(np.arange(len(lengths)), sources, targets)
    plans = by_length(pairs, config, lambda n, _: np.arange(n))
    return [micro.pairs.numbers.tolist() for plan in plans for micro in plan.micro]
