"""The loader: batches in the plan's order, read ahead by worker processes or in this one.

Workers share nothing. Each makes the plan for itself, which is cheap, reads every n-th batch and
sends it through a pipe; a thread here receives from them in turn. So the batches and their order
are the same for any number of workers, a dead worker is an end of file and not a hang, and a dead
trainer is a broken pipe on which its workers end.
"""

import atexit
import itertools
import multiprocessing
import queue
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import numpy as np
import torch
from numpy.typing import NDArray

from transept.data.batching.batches import LoadedBatch
from transept.data.batching.collation import Header
from transept.data.batching.feed import Failure, Feed, serve
from transept.errors import ConfigError, DataError
from transept.runtime.interrupt import signals_held

PATIENCE = 0.1
"""Seconds after which a waiting thread looks whether it should stop."""


class Loader(Iterator[LoadedBatch]):
    """The batches of a feed. Use it in a `with` block, or close it: it may own processes."""

    def __init__(self, feed: Feed, workers: int = 0, prefetch: int = 16) -> None:
        """Start reading.

        Args:
            feed: What to read.
            workers: Processes that read ahead; with 0, each batch is read when it is asked for.
            prefetch: Batches kept ready where there are workers. They bridge the moment in which
                every worker plans the next window.
        """
        if workers < 0 or prefetch < 1:
            raise ConfigError(f"a loader cannot have {workers} workers and prefetch {prefetch}")
        self._team = _Team(feed, workers, prefetch) if workers else None
        self._batches = self._team.batches() if self._team else _read_here(feed)
        if self._team:
            weakref.finalize(self, self._team.stop).atexit = False

    def __next__(self) -> LoadedBatch:
        return next(self._batches)

    def close(self) -> None:
        """End the workers and the reading. After that, there are no more batches."""
        if self._team:
            self._team.stop()
        self._batches = iter(())

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _read_here(feed: Feed) -> Iterator[LoadedBatch]:
    for header, block in feed.blocks():
        yield _batch(header, block)


def _batch(header: Header, block: NDArray[np.int32]) -> LoadedBatch:
    # numpy widens the numbers: torch would start a pool of threads for each thread that calls it.
    tensor = torch.empty(len(block), dtype=torch.int64, pin_memory=_pinned())
    tensor.numpy()[:] = block
    return LoadedBatch.of(header, tensor)


@cache
def _pinned() -> bool:
    """Whether there is a device to which pinned memory is copied while the host goes on."""
    return torch.cuda.is_available()


class _Stopped(Exception):  # noqa: N818 (not an error: the loader was closed)
    """Nobody wants any more batches."""


class _Team:
    """Worker processes, and the thread that receives their batches in turn."""

    def __init__(self, feed: Feed, n: int, prefetch: int) -> None:
        self._ready: queue.Queue[LoadedBatch | Exception | None] = queue.Queue(prefetch)
        self._stop = threading.Event()
        with signals_held():
            self._workers = [_start(feed, worker, n) for worker in range(n)]
        self._thread = threading.Thread(target=self._receive_all, name="loader", daemon=True)
        self._thread.start()
        # At exit, multiprocessing asks its children to stop by a signal, and waits for them. Our
        # workers do not hear that signal, so they are ended before.
        atexit.register(self.stop)

    def batches(self) -> Iterator[LoadedBatch]:
        """What the workers sent, until the data end or something goes wrong."""
        while (item := self._ready.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    def stop(self) -> None:
        """End the thread, and kill the workers: they hold nothing that must be kept."""
        if self._stop.is_set():
            return
        atexit.unregister(self.stop)
        self._stop.set()
        self._thread.join()
        for process, receiver in self._workers:
            receiver.close()
            process.kill()
            process.join()
            process.close()

    def _receive_all(self) -> None:
        with suppress(_Stopped):
            try:
                for process, receiver in itertools.cycle(self._workers):
                    batch = self._receive(process, receiver)
                    self._put(batch)
                    if batch is None:
                        return
            except _Stopped:
                raise
            except Exception as error:
                self._put(error)

    def _receive(self, process: BaseProcess, receiver: Connection) -> LoadedBatch | None:
        try:
            while not receiver.poll(PATIENCE):
                if self._stop.is_set():
                    raise _Stopped
            match receiver.recv():
                case Header() as header:
                    block = np.empty(header.size, dtype=np.int32)
                    receiver.recv_bytes_into(block)
                    return _batch(header, block)
                case Failure(what, trace):
                    error = DataError(f"{process.name} failed: {what}")
                    error.add_note(trace)
                    raise error
                case _:
                    return None
        except (EOFError, OSError) as error:
            raise DataError(_obituary(process)) from error

    def _put(self, item: LoadedBatch | Exception | None) -> None:
        while not self._stop.is_set():
            try:
                return self._ready.put(item, timeout=PATIENCE)
            except queue.Full:
                continue
        raise _Stopped


def _start(feed: Feed, worker: int, workers: int) -> tuple[BaseProcess, Connection]:
    # A fresh interpreter, because forking a process that has threads and a CUDA context can hang.
    # It imports numpy and no torch, so it starts quickly.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    name = f"loader worker {worker + 1} of {workers}"
    arguments = (sender, feed, worker, workers)
    process = context.Process(target=serve, args=arguments, name=name, daemon=True)
    process.start()
    # Only the worker may hold this end, or its death would go unnoticed.
    sender.close()
    return process, receiver


def _obituary(process: BaseProcess) -> str:
    process.join(timeout=5)
    code = process.exitcode
    how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended ({code})"
    return (
        f"{process.name} {how} before the data did; signal 9 often means that memory ran out: take "
        'fewer workers. A script that makes a loader needs `if __name__ == "__main__":` around it'
    )
