"""Ranks without torchrun: processes forked from one that has loaded torch, which takes seconds.

Only for scripts of their own: a process that has already computed gradients must not fork.
"""

import os
import socket
import sys
import traceback
import warnings
from collections.abc import Callable

# Optimizers import the compiler when they are made. Here once, and not once a rank.
import torch._dynamo

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch.distributed.optim  # noqa: F401


def in_ranks(size: int, work: Callable[[], object]) -> None:
    """Do the same work in `size` processes that know of each other as torchrun's workers do."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    processes = []
    for rank in range(size):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}  # fmt: skip
        processes.append(_forked(work, {name: str(value) for name, value in place.items()}))
    _expect_success(processes)


def by_itself(work: Callable[[], object]) -> None:
    """Do the work in one process that knows of no others."""
    _expect_success([_forked(work, {})])


def _forked(work: Callable[[], object], place: dict[str, str]) -> int:
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.environ.update(place)
        try:
            work()
        except SystemExit as end:
            os._exit(end.code if isinstance(end.code, int) else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return process


def _expect_success(processes: list[int]) -> None:
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
    if any(codes):
        sys.exit(f"ranks ended with {codes}")
