"""Worker processes that take tasks in turn and return results in task order.

A worker is a fresh interpreter at the other end of a pipe. It imports only what its work needs, so
it starts in a fraction of a second. A dead worker causes an end of file instead of a hang. When
this process ends for any reason, the pipe breaks and the worker exits too.
"""

import atexit
import multiprocessing
import os
import pickle
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import cycle, islice
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from transept.errors import DataError, TranseptError
from transept.runtime.interrupt import signals_held

Task = TypeVar("Task")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers(Generic[Task, Result]):
    """A process pool. Use it in a `with` block, or call `close`."""

    def __init__(
        self,
        work: Sequence[Callable[[Task], Answer]],
        name: str,
        finish: Callable[[Answer], Result],
    ) -> None:
        """Start the processes.

        Args:
            work: One picklable callable per worker, called with each of its tasks.
            name: The name of a worker in messages.
            finish: Applied to each answer here, in the thread that receives it.
        """
        self._workers: list[_Worker[Task, Result]] = []
        # At exit, multiprocessing stops its children by a signal and waits for them. These
        # workers block that signal, so they are ended first.
        atexit.register(self.close)
        try:
            with signals_held():
                for number, each in enumerate(work, start=1):
                    called = f"{name} {number} of {len(work)}"
                    self._workers.append(_Worker(each, called, finish))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Workers[Task, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def map(self, tasks: Iterable[Task], ahead: int) -> Iterator[Result]:
        """Return the result of each task. Worker k of n does every n-th task, from the k-th on.

        Args:
            tasks: Consumed lazily, as tasks are submitted.
            ahead: The number of tasks submitted before their results are requested.
        """
        turns = zip(cycle(self._workers), tasks, strict=False)
        waiting = deque(worker.submit(task) for worker, task in islice(turns, ahead))
        return self._results(waiting, turns)

    def close(self) -> None:
        """Kill the workers. They hold no state worth saving."""
        for worker in self._workers:
            worker.kill()
        while self._workers:
            self._workers.pop().join()
        atexit.unregister(self.close)

    @staticmethod
    def _results(
        waiting: "deque[Future[Result]]", turns: "Iterator[tuple[_Worker[Task, Result], Task]]"
    ) -> Iterator[Result]:
        while waiting:
            waiting.extend(worker.submit(task) for worker, task in islice(turns, 1))
            yield waiting.popleft().result()


class _Worker(Generic[Task, Result]):
    """A process, and the local thread that sends it one task after another."""

    def __init__(
        self, work: Callable[[Task], Answer], name: str, finish: Callable[[Answer], Result]
    ) -> None:
        # Not fork: this process may have threads and a CUDA context, which a fork cannot use.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name), name=name, daemon=True)
        self._process.start()
        # Not an argument of the process: `start` would wait until the worker has read it, and
        # the workers would start one after another.
        self._work: bytes | None = pickle.dumps(work)
        theirs.close()  # only the worker may hold this end, so that its death is noticed
        self._finish = finish
        self._tasks: SimpleQueue[tuple[Task, Future[Result]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, task: Task) -> Future[Result]:
        result: Future[Result] = Future()
        self._tasks.put((task, result))
        return result

    def kill(self) -> None:
        self._tasks.put(None)
        self._process.kill()

    def join(self) -> None:
        self._thread.join()
        self._pipe.close()
        self._process.join()
        self._process.close()

    def _run(self) -> None:
        while (item := self._tasks.get()) is not None:
            task, result = item
            try:
                result.set_result(self._finish(self._ask(task)))
            except Exception as error:
                result.set_exception(error)

    def _ask(self, task: Task) -> Any:
        try:
            if self._work is not None:
                self._pipe.send_bytes(self._work)
                self._work = None
            self._pipe.send(task)
            answer = _receive(self._pipe)
        except (EOFError, OSError) as error:
            raise DataError(self._exit_reason()) from error
        if isinstance(answer, TranseptError):
            raise answer
        return answer

    def _exit_reason(self) -> str:
        self._process.join(timeout=5)
        code = self._process.exitcode
        if code is not None and code < 0:
            return (
                f"{self._process.name} was killed by signal {-code}; signal 9 often means that "
                "memory ran out: use fewer workers"
            )
        return (
            f"{self._process.name} ended with exit code {code}; a script that starts workers needs "
            '`if __name__ == "__main__":` around its code'
        )


def _serve(pipe: Connection, name: str) -> None:
    """Receive the work, then handle tasks until the other end of the pipe is closed.

    Stop signals have been blocked since before the worker started: they reach all processes of a
    group, and only the parent decides to stop.
    """
    with suppress(EOFError, OSError):
        work = pickle.loads(pipe.recv_bytes())
        while True:
            _send(pipe, _answer(work, pipe.recv(), name))


def _answer(work: Callable[[Any], Any], task: Any, name: str) -> Any:
    try:
        return work(task)
    except TranseptError as error:
        answer = error
        trace = traceback.format_exc()
    except Exception as error:
        answer = DataError(f"{name} failed: {type(error).__name__}: {error}")
        trace = traceback.format_exc()
    answer.add_note(f"In {name}:\n{trace}")
    return answer


# --- arrays are sent out of band, next to the pickle, which saves copies ----------------------


def _send(pipe: Connection, answer: Any) -> None:
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    pipe.send((content, len(buffers)))
    for buffer in buffers:
        pipe.send_bytes(buffer.raw())


def _receive(pipe: Connection) -> Any:
    content, n_buffers = pipe.recv()
    return pickle.loads(content, buffers=[pipe.recv_bytes() for _ in range(n_buffers)])
