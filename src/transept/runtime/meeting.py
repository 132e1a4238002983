"""Ranks meet in torchrun's store, and ignore entries of earlier ranks.

torchrun keeps one store across restarts, and gives its workers no restart id that is the same on
every machine. Gloo and NCCL would read stale addresses of dead processes
(pytorch/pytorch#135712). So the ranks first agree on an unused name.
"""

import json
import time
import uuid
from typing import Any

from torch._C._distributed_c10d import PrefixStore

from transept.errors import RankError

PAUSE = 0.02
MEETING = 300.0
"""Maximum seconds between the arrival of the first rank and the last."""

HELLO, CALL = "transept/hello", "transept/call"


def meet(store: Any, rank: int, size: int) -> Any:
    """Wait for all ranks, then return a part of the store that only these ranks use."""
    deadline = time.monotonic() + MEETING
    own = uuid.uuid4().hex
    store.set(f"{HELLO}/{rank}", own)
    name: str | None = None
    while time.monotonic() < deadline:
        name = _call(store, size, name) if rank == 0 else _answer(store, rank, own, name)
        if name is not None and _all_agree(store, rank, size, name):
            return PrefixStore(f"transept/{name}", store)
        time.sleep(PAUSE)
    raise RankError(
        f"rank {rank} of {size} waited {MEETING:.0f} s for the others: check why some of them "
        "did not start, and whether all machines can reach MASTER_ADDR"
    )


def _call(store: Any, size: int, name: str | None) -> str | None:
    """On rank 0, propose a name to the ranks whose words it lists; a changed word, a new name."""
    keys = [f"{HELLO}/{rank}" for rank in range(size)]
    if not store.check(keys):
        return None
    words = [word.decode() for word in store.multi_get(keys)]
    if name is not None and json.loads(store.get(CALL))["words"] == words:
        return name
    name = uuid.uuid4().hex
    store.set(CALL, json.dumps({"name": name, "words": words}))
    return name


def _answer(store: Any, rank: int, own: str, name: str | None) -> str | None:
    """On the other ranks, answer a call that contains this rank's own word."""
    if not store.check([CALL]):
        return None
    call = json.loads(store.get(CALL))
    if call["words"][rank : rank + 1] != [own]:
        return None
    if call["name"] != name:
        store.add(f"transept/{call['name']}/here", 1)
    return str(call["name"])


def _all_agree(store: Any, rank: int, size: int, name: str) -> bool:
    done = f"transept/{name}/all"
    if rank == 0 and store.add(f"transept/{name}/here", 0) == size - 1:
        store.set(done, "1")
    return bool(store.check([done]))
