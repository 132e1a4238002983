"""Exercise 17: greedy search.

Inference is autoregressive: the decoder writes one token at a time. Greedy search appends the most
probable token, asks for the next, and repeats. It stops at the first end symbol, or when the output
has the maximum length.

Hint: `next_log_p` needs the whole output so far, not only its last token.
"""

from collections.abc import Callable

from torch import Tensor


def greedy_search(
    next_log_p: Callable[[list[int]], Tensor], max_length: int, eos_id: int
) -> list[int]:
    """Return the ids of the output, without the end symbol.

    Args:
        next_log_p: Returns the log-probability of each token, of shape [V], as the next one after
            the tokens that it is given. The first call is with an empty list.
        max_length: The maximum number of tokens, the end symbol included.
        eos_id: The id of the end symbol.
    """
    raise NotImplementedError
