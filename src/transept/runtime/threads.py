"""Threads across pieces of work, where those inside of one are of little use."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event
from typing import Generic, NamedTuple, TypeVar

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
    """The results of some items, so many of which are done at once, each by a single thread.

    Matrices of a few rows are too small to be shared by threads: waiting for one another takes them
    longer than the product, and on a machine with other work many times as long. What cannot be
    done beside anything else has as many threads as `inside` says.
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
        # What the threads have set is what threads that come later would begin with.
        torch.set_num_threads(before)


def as_it_comes(
    work: Callable[[Item], Iterable[Result]],
    take: Callable[[int], Sequence[Item]],
    n_threads: int,
    inside: int,
) -> Iterator[Result]:
    """Results of items that come while others are worked on, as soon as each is there.

    Args:
        work: Gives an item's results, one after another.
        take: Gives the next items, at most so many. It is asked after each result, even if only for
            none; the end has come when nothing is under way and nothing comes.
        n_threads: How many items are worked on at once, each by a single thread.
        inside: How many threads an item has that nothing else is beside of when it begins.
    """
    news: SimpleQueue[_News[Result]] = SimpleQueue()
    stopped = Event()
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(n_threads)
    n_busy = 0
    try:
        while True:
            items = take(n_threads - n_busy)
            n_busy += len(items)
            for item in items:
                pool.submit(_follow, work, item, inside if n_busy == 1 else 1, news, stopped)
            if not n_busy:
                return
            results, error, ends = news.get()
            if error is not None:
                raise error
            n_busy -= ends
            yield from results
    finally:
        stopped.set()
        pool.shutdown()
        torch.set_num_threads(before)


class _News(NamedTuple, Generic[Result]):
    """From a thread: results, what it failed with, whether its item is done."""

    results: tuple[Result, ...] = ()
    error: Exception | None = None
    ends: bool = False


def _follow(
    work: Callable[[Item], Iterable[Result]],
    item: Item,
    n_inside: int,
    news: "SimpleQueue[_News[Result]]",
    stopped: Event,
) -> None:
    torch.set_num_threads(n_inside)
    try:
        for result in work(item):
            if stopped.is_set():
                return
            news.put(_News((result,)))
        news.put(_News(ends=True))
    except Exception as error:
        news.put(_News(error=error))
