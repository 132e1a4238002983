"""Check of exercise 18."""

import torch
from comparing import must, shaped

from transept.model.attention import reference_attention

LENGTH, D_MODEL, D_K, D_V = 12, 16, 6, 4


def check(student):
    """Compare each step with masked attention over the whole sequence, and count its work."""
    torch.manual_seed(1)
    w_q, w_k, w_v = (torch.randn(D_MODEL, width) for width in (D_K, D_K, D_V))
    x = torch.randn(LENGTH, D_MODEL) / 4
    causal = torch.ones(1, LENGTH, LENGTH, dtype=torch.bool).tril()
    whole = reference_attention(*((x @ w)[None, None] for w in (w_q, w_k, w_v)), causal)[0, 0]
    student.CachedAttention(w_q, w_k, w_v).step(x[5:6])  # another sentence: the cache is not shared
    attention = student.CachedAttention(w_q, w_k, w_v)
    for position in range(LENGTH - 1):
        compare(attention.step(x[position : position + 1]), whole[position], position)
    count_work(attention, x[-1:])


def compare(found, expected, position):
    """Compare one step with the whole sequence."""
    shaped(found, (1, D_V), f"the output of step {position}")
    difference = (found[0] - expected).abs().max()
    must(
        difference < 1e-4,
        f"the output of step {position} (from 0) differs from masked attention over the whole "
        f"sequence by {difference:.3g}{hint(position)}",
    )


def count_work(attention, x):
    """Count the multiplications of the last step."""
    from torch.utils.flop_counter import FlopCounterMode  # takes seconds, so only here

    with FlopCounterMode(display=False) as counter:
        attention.step(x)
    enough = D_MODEL * (2 * D_K + D_V) + LENGTH * (D_K + D_V)
    work = counter.get_total_flops() // 2
    must(
        work <= enough,
        f"step {LENGTH - 1} makes {work:,} multiplications, and {enough:,} are enough: "
        "cache keys and values, so that only the new token is projected",
    )


def hint(position):
    """What the first wrong step suggests."""
    if position == 0:
        return ": the first token attends to itself alone, so its output is its value"
    return ": are all earlier keys and values in the cache, in order, and the new ones too?"
