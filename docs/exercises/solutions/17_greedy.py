"""Solution of exercise 17. In the package: `transept.decoding.greedy`."""

from collections.abc import Callable

from torch import Tensor


def greedy_search(
    next_log_p: Callable[[list[int]], Tensor], max_length: int, eos_id: int
) -> list[int]:
    """Return the ids of the output, without the end symbol."""
    ids: list[int] = []
    while len(ids) < max_length:
        token = int(next_log_p(ids).argmax())
        if token == eos_id:
            break
        ids.append(token)
    return ids
