"""Detects duplicate pairs with a set of 64-bit hashes, in at most sixteen bytes per pair.

The hashes are stored in a file in order of arrival, and in memory in an open-addressing table.
The file lets an interrupted preparation restore the set. It also lets the table grow without
keeping the old and the new one in memory together.

Among n different pairs, two share a hash with probability n²/2⁶⁵. For the 36 million
English-French pairs of WMT, the chance that one pair is dropped by mistake is about one in thirty
thousand.
"""

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transept.data.preparation.journal import reopen

Hashes = NDArray[np.uint64]

HASH_BYTES = 8
FIRST_CAPACITY = 1 << 10
FULLEST = 0.75
GROWTH = 1.4
BLOCK = 1 << 16
"""Number of hashes indexed at a time when the table grows."""

# Odd constants (of splitmix64) that spread consecutive probes of one hash over the table.
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


def pair_hash(source: str, target: str) -> bytes:
    """Return an eight-byte hash of two sentences, neither of which contains a newline."""
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=HASH_BYTES).digest()


class SeenPairs:
    """An append-only set of hashes, stored in the file `path`."""

    def __init__(self, path: Path, count: int = 0) -> None:
        """Load the first `count` hashes of the file, and truncate the rest."""
        self._file = reopen(path, count * HASH_BYTES)
        self._count = count
        self._table: Hashes = np.zeros(0, dtype=np.uint64)
        self._index(max(FIRST_CAPACITY, int(count / FULLEST) + 1))

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def nbytes(self) -> int:
        """The memory used by the table."""
        return self._table.nbytes

    def fileno(self) -> int:
        """Flush all hashes to the operating system and return the file descriptor."""
        self._file.flush()
        return self._file.fileno()

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add all hashes; return True for each that is new, also among these hashes."""
        hashes = np.maximum(hashes, np.uint64(1))  # 0 stands for an empty slot
        if self._count + len(hashes) > FULLEST * len(self._table):
            needed = (self._count + len(hashes)) / FULLEST
            self._index(int(max(len(self._table) * GROWTH, needed)) + 1)
        unique, first = np.unique(hashes, return_index=True)
        new = np.zeros(len(hashes), dtype=np.bool_)
        new[first[self._insert(unique)]] = True
        self._file.write(hashes[new].astype("<u8").tobytes())
        self._count += int(np.count_nonzero(new))
        return new

    def _index(self, capacity: int) -> None:
        """Rebuild the table from the file, in blocks."""
        self._table = np.zeros(0, dtype=np.uint64)
        self._table = np.zeros(capacity, dtype=np.uint64)
        self._file.seek(0)
        while block := self._file.read(BLOCK * HASH_BYTES):
            self._insert(np.frombuffer(block, dtype="<u8").astype(np.uint64))

    def _insert(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Insert distinct hashes into the table; return True for each that is new."""
        absent = np.zeros(len(hashes), dtype=np.bool_)
        pending = np.arange(len(hashes))
        probe = 0
        while pending.size:
            wanted = hashes[pending]
            slots = self._slots(wanted, probe)
            empty = self._table[slots] == 0
            # Several hashes may probe the same empty slot: the last one stays, others continue.
            self._table[slots[empty]] = wanted[empty]
            settled = self._table[slots] == wanted
            absent[pending[settled & empty]] = True
            pending = pending[~settled]
            probe += 1
        return absent

    def _slots(self, hashes: Hashes, probe: int) -> NDArray[np.int64]:
        with np.errstate(over="ignore"):
            mixed = hashes + np.uint64(probe) * _STRIDE
            mixed = (mixed ^ (mixed >> _HALF)) * _SPREAD
        slots = ((mixed >> _HALF) * np.uint64(len(self._table))) >> _HALF
        return slots.astype(np.int64)
