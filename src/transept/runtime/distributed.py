"""The processes that do one work together: torchrun starts them, torch.distributed joins them.

A process by itself is a world of one. It has no process group, and nothing here costs it anything.
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
"""Collectives have no time limit of their own: the watchdog finds and names a rank that stands
still too long."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """This process among those that work with it."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Among the ranks of this machine."""
    local_size: int = 1
    joined: bool = False
    """Whether there is a process group. torchrun makes one even for a single rank."""
    wire: torch.dtype | None = None
    """The type in which gradients travel between ranks; None: their own."""
    pulse: Pulse = field(default_factory=Pulse)
    """What this rank is doing, for the others to see."""

    @property
    def leads(self) -> bool:
        """Whether this rank writes the files and the console, and looks at the clock."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over all ranks, in place."""
        if self.joined:
            dist.all_reduce(tensor)
        return tensor

    def agree(self, wishes: Sequence[int]) -> list[int]:
        """For each wish, the largest of all ranks: every rank gets the same list."""
        if not self.joined:
            return list(wishes)
        votes = torch.tensor(wishes, dtype=torch.int64)
        dist.all_reduce(votes, op=dist.ReduceOp.MAX)
        return [int(vote) for vote in votes]

    def from_leader(self, work: Callable[[], Value]) -> Value:
        """Let rank 0 do this work, and give its value to all ranks; if it fails, all fail.

        JSON must be able to express the value.
        """
        if not self.joined:
            return work()
        answer: dict[str, Any] = {}
        if self.leads:
            try:
                answer = {"value": work()}
            except TranseptError as error:
                self._tell({"error": str(error), "code": error.exit_code})
                raise
        answer = self._tell(answer)
        if "error" in answer:
            raise RankError(answer["error"], answer["code"])
        value: Value = answer["value"]
        return value

    def spread(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rank 0's tensors, for all ranks; those of the others are ignored."""
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

    def _tell(self, message: dict[str, Any]) -> dict[str, Any]:
        """Rank 0's message, on every rank."""
        text = json.dumps(message).encode() if self.leads else b""
        length = torch.tensor([len(text)])
        dist.broadcast(length, 0)
        letters = torch.zeros(int(length), dtype=torch.uint8)
        if self.leads:
            letters.copy_(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        dist.broadcast(letters, 0)
        heard: dict[str, Any] = json.loads(bytes(letters.tolist()))
        return heard


ALONE = World()
"""The world of a process that nobody else works with."""


def under_torchrun() -> bool:
    """Whether a launcher has given this process its place among others."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


@contextmanager
def join_world(
    patience: float,
    wire: torch.dtype | None,
    tell: Callable[[str], None],
    setting: str | None = None,
) -> Iterator[World]:
    """Within it, this process is one of those that torchrun started; without torchrun, alone.

    Args:
        patience: Seconds after which a rank that stands still is named, and all are ended.
        wire: The type in which gradients travel between ranks; None: their own.
        tell: Prints a message on the console before the watchdog has to end the process.
        setting: Where the user may set the patience, if anywhere.
    """
    if not under_torchrun():
        yield ALONE
        return
    world, board = _take_place(wire)
    end = _last_words(world, board, tell)
    with Watchdog(world.pulse, board, patience, end, setting), _failing_together(board):
        yield world
        # Rank 0 may still be writing: should that fail, all have failed.
        world.pulse.at("agreeing")
        world.agree([0])
    dist.destroy_process_group()


def _take_place(wire: torch.dtype | None) -> tuple[World, Board]:
    """Meet the other ranks."""
    common, rank, size = next(rendezvous("env://", timeout=timedelta(minutes=5)))
    store = meet(common, rank, size)
    # NCCL is set up by its first use, on GPUs; what the hosts agree on goes over gloo.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=FOREVER)
    # Its own connection, where torch can give it one: the main thread may wait on the other.
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
    """Tell the others why this rank fails; and where it fails because of another, say so."""
    try:
        yield
    except TranseptError as error:
        first = board.publish(f"{board.who} failed: {error}", error.exit_code)
        board.leave()
        if board.spoke:
            raise
        # Where another has failed, torchrun asks the rest to stop: that is not why they end.
        raise first from error
    except Exception as error:
        if not _is_about_others(error):
            board.publish(f"{board.who} failed: {type(error).__name__}: {error}", 1)
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


def _last_words(
    world: World, board: Board, tell: Callable[[str], None]
) -> Callable[[RankError], None]:
    def end(error: RankError) -> None:
        record_cause(error)
        if board.spoke or world.local_rank == 0:
            tell(str(error))
        board.leave()
        # The main thread waits inside of a collective, where no exception reaches it.
        os._exit(error.exit_code)

    return end


def record_cause(error: Exception) -> None:
    """Write why this process ends into the file that torchrun's report is made from."""
    if "TORCHELASTIC_ERROR_FILE" not in os.environ:
        return
    from torch.distributed.elastic.multiprocessing.errors import get_error_handler

    try:
        # torchrun prints the traceback, and what was raised on purpose says enough without one.
        raise (error.with_traceback(None) if isinstance(error, TranseptError) else error) from None
    except Exception as recorded:
        get_error_handler().record_exception(recorded)
