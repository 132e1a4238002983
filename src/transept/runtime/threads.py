"""Threads that do pieces of work side by side, where several threads help one piece little."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores(device: torch.device) -> int:
    """How many pieces of work to do at once: on a CPU as many as torch may use threads."""
    return torch.get_num_threads() if device.type == "cpu" else 1


@contextmanager
def threads_inside(number: int) -> Iterator[None]:
    """Share each operation of torch among so many threads."""
    before = torch.get_num_threads()
    if number == before:
        yield
        return
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], n_threads: int, inside: int
) -> list[Result]:
    """Do the work of each item, `n_threads` items at once, each by a single thread.

    Matrices of a few rows are too small to be shared by threads: waiting for one another takes them
    longer than the product, and on a machine with other work many times as long. If only one item
    is done at a time, `inside` threads do it together.
    """
    if min(n_threads, len(items)) < 2:
        with threads_inside(inside):
            return [work(item) for item in items]
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)
        # Later threads would begin with the number that these have set.
        torch.set_num_threads(before)
