"""Exercise 10: batches of similar length (section 5.1).

A batch of the paper has about 25,000 source tokens and 25,000 target tokens. Its pairs have similar
lengths, because shorter sentences are padded to the longest of the batch, and padding costs time.

Group pairs into batches. A batch of n pairs takes n · (its longest source) positions on the source
side, and n · (its longest target) on the target side. Neither may exceed the budget. Each pair must
be in exactly one batch.

Hint: sort the pairs by length first (by the longer side), then fill one batch after the other. A
batch is full if one more pair would exceed the budget on one of the sides.
"""


def batches(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    """Return batches of pairs, each as a list of indices into `lengths`.

    Args:
        lengths: The lengths of source and target of each pair. None exceeds the budget.
        budget: The maximum number of positions of a batch on either side, including padding.
    """
    raise NotImplementedError
