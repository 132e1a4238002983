"""Preparation by several ranks: each encodes every so-many-th chunk, rank 0 puts them in order.

All ranks read the same text, so that nobody need hand it out. What the others have encoded goes
to rank 0 through the process group, as it is asked for: who is ahead waits, and nothing lies on
disk that a later run could take for its own. With each chunk comes the checksum of all text up to
it, which rank 0 compares with that of its own reading.
"""

import dataclasses
import io
import json
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from transept import config
from transept.data.preparation.changes import changes
from transept.data.preparation.cleaning import Dropped, Reason
from transept.data.preparation.encode import EncodedChunk, EncodedSide
from transept.data.preparation.formats import Chunk
from transept.data.preparation.workers import Workers
from transept.data.shards import Settings
from transept.errors import DataError

if TYPE_CHECKING:
    from transept.runtime.distributed import World


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What rank 0 tells the others: the settings, and after how much text to begin."""

    settings: Settings
    chunks: int
    checksum: int


def give_order(world: "World", order: Order | None) -> None:
    """Rank 0 tells the others where to begin; None where nothing is left to do."""
    world.from_leader(lambda: order and config.as_table(order))


def take_order(world: "World", settings: Settings) -> Order | None:
    """The order of rank 0, which is refused if this rank would make another corpus."""
    table: dict[str, Any] | None = world.from_leader(lambda: None)
    if table is None:
        return None
    order = config.structure(Order, table)
    if changed := changes(order.settings, settings):
        raise DataError(
            "this rank does not see what rank 0 sees:\n"
            + "\n".join(f"  {change}" for change in changed)
            + "\nAll ranks need the same command and the same files, on a file system they share"
        )
    return order


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A chunk whose ids are still to come: from a worker here, or else from another rank."""

    number: int
    chunk: Chunk
    checksum: int
    here: Future[EncodedChunk] | None


class Leader:
    """Rank 0's workers together with the other ranks: encodes as `Workers` does, in order."""

    def __init__(self, workers: Workers, world: "World", start: Order) -> None:
        self._workers = workers
        self._world = world
        self._start = start

    def encode(self, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, EncodedChunk]]:
        """Each chunk with what became of it; as many are read ahead as keep the workers busy."""
        waiting: deque[_Awaited] = deque()
        checksum, size = self._start.checksum, self._world.size
        for number, chunk in enumerate(chunks, self._start.chunks):
            if len(waiting) == self._workers.ahead * size:
                yield self._result(waiting.popleft())
            checksum = chunk.checksum(checksum)
            here = self._workers.submit(chunk) if number % size == 0 else None
            waiting.append(_Awaited(number, chunk, checksum, here))
        for first in waiting:
            yield self._result(first)

    def _result(self, first: _Awaited) -> tuple[Chunk, EncodedChunk]:
        if first.here is not None:
            self._world.pulse.at("computing", first.number)
            return first.chunk, first.here.result()
        self._world.pulse.at("agreeing", first.number)
        sender = first.number % self._world.size
        checksum, encoded = unpacked(self._world.receive(sender))
        if checksum != first.checksum:
            raise DataError(
                f"rank {sender} read other text than rank 0: all ranks must see the same files, "
                "and nobody may write to them meanwhile; see to that and run the same command again"
            )
        return first.chunk, encoded


def assist(workers: Workers, world: "World", start: Order, chunks: Iterable[Chunk]) -> None:
    """The work of the other ranks: encode a share of the chunks, and send it to rank 0."""
    checksums: deque[int] = deque()

    def share() -> Iterator[Chunk]:
        checksum = start.checksum
        for number, chunk in enumerate(chunks, start.chunks):
            checksum = chunk.checksum(checksum)
            if number % world.size == world.rank:
                checksums.append(checksum)
                yield chunk

    first = start.chunks + (world.rank - start.chunks) % world.size
    world.pulse.at("computing", first)
    for number, (_, encoded) in zip(count(first, world.size), workers.encode(share())):
        world.pulse.at("agreeing", number)
        world.send(packed(checksums.popleft(), encoded), to=0)
        world.pulse.at("computing", number + world.size)


# --- an encoded chunk as bytes ----------------------------------------------------------------


def packed(checksum: int, encoded: EncodedChunk) -> bytes:
    """An encoded chunk as an npz, with a JSON text for what is no array."""
    dropped = [dataclasses.astuple(drop) for drop in encoded.dropped]
    rest = {"checksum": checksum, "name": encoded.name, "n_rows": encoded.n_rows}
    file = io.BytesIO()
    np.savez(
        file,
        rest=np.frombuffer(json.dumps(rest | {"dropped": dropped}).encode(), dtype=np.uint8),
        lines=encoded.lines,
        hashes=encoded.hashes,
        source_ids=encoded.source.ids,
        source_lengths=encoded.source.lengths,
        target_ids=encoded.target.ids,
        target_lengths=encoded.target.lengths,
    )
    return file.getvalue()


def unpacked(content: bytes) -> tuple[int, EncodedChunk]:
    """What `packed` was given."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        rest = json.loads(arrays["rest"].tobytes())
        encoded = EncodedChunk(
            name=rest["name"],
            n_rows=rest["n_rows"],
            lines=arrays["lines"],
            source=EncodedSide(arrays["source_ids"], arrays["source_lengths"]),
            target=EncodedSide(arrays["target_ids"], arrays["target_lengths"]),
            hashes=arrays["hashes"],
            dropped=[
                Dropped(path, line, Reason(reason), detail)
                for path, line, reason, detail in rest["dropped"]
            ],
        )
    return rest["checksum"], encoded
