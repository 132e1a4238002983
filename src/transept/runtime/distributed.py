"""Cooperating processes: torchrun starts them, torch.distributed connects them.

A single process is a world of size one. It has no process group and no overhead.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.rendezvous import rendezvous

from transept.errors import RankError, TranseptError
from transept.runtime.meeting import meet
from transept.runtime.watch import Board, Pulse, Watchdog

FOREVER = timedelta(days=7)
"""Collectives do not time out by themselves: the watchdog finds and names a rank that hangs."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """This process's rank among the cooperating processes."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """The rank among the processes of this machine."""
    local_size: int = 1
    joined: bool = False
    """Whether there is a process group. torchrun makes one even for a single rank."""
    wire: torch.dtype | None = None
    """The dtype in which gradients are sent between ranks. None: their own."""
    pulse: Pulse = field(default_factory=Pulse)
    """The current activity of this rank, published to the others."""

    @property
    def leads(self) -> bool:
        """Whether this rank writes files and console output, and checks the time limits."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all ranks, in place."""
        if self.joined:
            dist.all_reduce(tensor)
        return tensor

    def agree(self, wishes: Sequence[int]) -> list[int]:
        """Return the elementwise maximum of all ranks' wishes, the same list on every rank."""
        if not self.joined:
            return list(wishes)
        votes = torch.tensor(wishes, dtype=torch.int64)
        dist.all_reduce(votes, op=dist.ReduceOp.MAX)
        return [int(vote) for vote in votes]

    def from_leader(self, work: Callable[[], Value]) -> Value:
        """Call `work` on rank 0 and return its value on all ranks. If it fails, all ranks fail.

        The value must be serializable as JSON.
        """
        if not self.joined:
            return work()
        answer: dict[str, Any] = {}
        if self.leads:
            try:
                answer = {"value": work()}
            except TranseptError as error:
                self._broadcast({"error": str(error), "code": error.exit_code})
                raise
        answer = self._broadcast(answer)
        if "error" in answer:
            raise RankError(answer["error"], answer["code"])
        value: Value = answer["value"]
        return value

    def spread(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return rank 0's tensors on all ranks. Tensors passed by other ranks are ignored."""
        if not self.joined:
            return dict(tensors)
        shapes = self.from_leader(
            lambda: {x: (list(t.shape), str(t.dtype).split(".")[1]) for x, t in tensors.items()}
        )
        received = {}
        for name, (shape, kind) in shapes.items():
            blank = torch.empty(shape, dtype=getattr(torch, kind))
            received[name] = tensors[name].contiguous() if self.leads else blank
            dist.broadcast(received[name], 0)
        return received

    def _broadcast(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return rank 0's message on every rank."""
        text = json.dumps(message).encode() if self.leads else b""
        length = torch.tensor([len(text)])
        dist.broadcast(length, 0)
        letters = torch.zeros(int(length), dtype=torch.uint8)
        if self.leads:
            letters.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        dist.broadcast(letters, 0)
        received: dict[str, Any] = json.loads(bytes(letters.tolist()))
        return received


ALONE = World()
"""The world of a single process."""


def under_torchrun() -> bool:
    """Whether a launcher has assigned this process a rank."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


@contextmanager
def join_world(
    patience: float,
    wire: torch.dtype | None,
    report: Callable[[str], None],
    setting: str | None = None,
) -> Iterator[World]:
    """Join the processes that torchrun started; without torchrun, yield a world of one.

    Args:
        patience: Seconds without progress after which the hanging rank is named and all ranks end.
        wire: The dtype in which gradients are sent between ranks. None: their own.
        report: Prints a message on the console before the watchdog ends the process.
        setting: The name of the setting for `patience`, if users can change it.
    """
    if not under_torchrun():
        yield ALONE
        return
    world, board = _join(wire)
    end = _on_fatal(world, board, report)
    with Watchdog(world.pulse, board, patience, end, setting), _failing_together(board):
        yield world
        # Rank 0 may still be writing. If that fails, all ranks must fail.
        world.pulse.at("agreeing")
        world.agree([0])
    dist.destroy_process_group()


def _join(wire: torch.dtype | None) -> tuple[World, Board]:
    common, rank, size = next(rendezvous("env://", timeout=timedelta(minutes=5)))
    store = meet(common, rank, size)
    # NCCL is initialized on first use, for GPU tensors. Host tensors go over gloo.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=FOREVER)
    # A separate connection if torch supports it: the main thread may block on the other one.
    own = store.clone() if hasattr(store, "clone") else store
    by_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)
    board = Board(own, rank, size, keeps_store=rank == 0 and not by_launcher)
    world = World(
        rank=rank,
        size=size,
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        local_size=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        joined=True,
        wire=wire,
    )
    return world, board


@contextmanager
def _failing_together(board: Board) -> Iterator[None]:
    """Publish why this rank fails; if another rank caused the failure, raise that cause."""
    try:
        yield
    except TranseptError as error:
        first = board.publish(f"{board.name} failed: {error}", error.exit_code)
        board.leave()
        if board.published_first:
            raise
        # When a rank fails, torchrun signals the others to stop. That signal is not the cause.
        raise first from error
    except Exception as error:
        if not _is_about_others(error):
            board.publish(f"{board.name} failed: {type(error).__name__}: {error}", 1)
            board.leave()
            record_cause(error)
            raise
        first = board.first_cause()
        board.leave()
        raise first from error


def _is_about_others(error: Exception) -> bool:
    text = str(error)
    known = ("gloo", "NCCL", "Connection closed by peer", "Connection reset by peer")
    return isinstance(error, dist.DistError) or any(word in text for word in known)


def _on_fatal(
    world: World, board: Board, report: Callable[[str], None]
) -> Callable[[RankError], None]:
    def end(error: RankError) -> None:
        record_cause(error)
        if board.published_first or world.local_rank == 0:
            report(str(error))
        board.leave()
        # The main thread is blocked in a collective, where no exception reaches it.
        os._exit(error.exit_code)

    return end


def record_cause(error: Exception) -> None:
    """Record why this process ends in the file that torchrun reports from."""
    if "TORCHELASTIC_ERROR_FILE" not in os.environ:
        return
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    try:
        # torchrun prints the traceback, which adds nothing to errors raised on purpose.
        raise (error.with_traceback(None) if isinstance(error, TranseptError) else error) from None
    except Exception as recorded:
        get_error_handler().record_exception(recorded)
