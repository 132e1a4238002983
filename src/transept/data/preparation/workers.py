"""Local processes that encode chunks. Results come in the order of the chunks.

Each process has a thread here that hands it one chunk at a time through a pipe. When this
process ends, however it ends, the pipe breaks and the worker leaves: none is ever orphaned.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from queue import SimpleQueue

from transept.data.preparation.encode import ChunkEncoder, EncodedChunk
from transept.data.preparation.formats import Chunk
from transept.errors import DataError, TranseptError
from transept.runtime.interrupt import STOP_SIGNALS, signals_held

AHEAD = 3
"""Chunks under way for each worker: enough that none waits for the reading or the writing."""


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """`count` processes with an encoder each; with none, the work is done here."""

    def __init__(self, encoder: ChunkEncoder, count: int) -> None:
        self._encoder = encoder
        self._threads = ThreadPoolExecutor(max(count, 1), thread_name_prefix="encode")
        self._ahead = max(count, 1) * AHEAD
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._all: list[_Worker] = []
        try:
            with signals_held():
                for _ in range(count):
                    self._all.append(_Worker(encoder))
                    self._idle.put(self._all[-1])
        except BaseException:
            self._kill()
            raise

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            self._kill()
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.close()

    @property
    def pids(self) -> list[int]:
        """The processes, for whoever watches their memory."""
        return [worker.pid for worker in self._all]

    def encode(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, EncodedChunk]]:
        """Each chunk with what became of it; a few chunks are read ahead, never more."""
        waiting: deque[tuple[Chunk, Future[EncodedChunk]]] = deque()
        for chunk in chunks:
            if len(waiting) == self._ahead:
                first, result = waiting.popleft()
                yield first, result.result()
            waiting.append((chunk, self._threads.submit(self._encode, chunk)))
        for first, result in waiting:
            yield first, result.result()

    def _kill(self) -> None:
        for worker in self._all:
            worker.kill()

    def _encode(self, chunk: Chunk) -> EncodedChunk:
        if not self._all:
            return self._encoder.encode(chunk)
        worker = self._idle.get()
        try:
            return worker.encode(chunk)
        finally:
            self._idle.put(worker)


class _Worker:
    """A process, seen from here."""

    def __init__(self, encoder: ChunkEncoder) -> None:
        # Not fork: this process has threads, and a fork would inherit their locks.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, encoder), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    def encode(self, chunk: Chunk) -> EncodedChunk:
        try:
            self._pipe.send(chunk)
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join(timeout=1)
            raise DataError(
                f"a worker process ended (exit code {self._process.exitcode}; -9 often means too "
                "little memory); run the same command again to go on, perhaps with fewer --workers"
            ) from error
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, EncodedChunk)
        return answer

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection, encoder: ChunkEncoder) -> None:
    """The life of a worker: until the other end of the pipe is gone."""
    for number in STOP_SIGNALS:  # Ctrl-C reaches the whole group; only the parent decides to stop
        signal.signal(number, signal.SIG_IGN)
    try:
        while True:
            chunk = pipe.recv()
            try:
                answer: EncodedChunk | TranseptError = encoder.encode(chunk)
            except TranseptError as error:
                answer = error
            pipe.send(answer)
    except (EOFError, OSError):
        return
