"""Has this pair been seen before? A set of 64-bit hashes in at most sixteen bytes a pair.

The hashes stand in a file in the order in which they came, and in memory in an open-addressing
table. The file lets an interrupted preparation take the set up again; it also lets the table
grow without the old and the new one ever being in memory together.

Two different pairs share a hash with probability n²/2⁶⁵: about one chance in thirty thousand
that a single pair of WMT's 36 million English-French ones is dropped by mistake.
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
"""Hashes that are indexed at once when the table grows."""

# Odd constants (of splitmix64) that spread consecutive probes of one hash over the table.
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)


def pair_hash(source: str, target: str) -> bytes:
    """Eight bytes for a pair of sentences, neither of which contains a newline."""
    return hashlib.blake2b(f"{source}\n{target}".encode(), digest_size=HASH_BYTES).digest()


class SeenPairs:
    """A set of hashes that only grows, kept in the file `path`."""

    def __init__(self, path: Path, count: int = 0) -> None:
        """Take up the first `count` hashes of the file and forget what follows them."""
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
        """The memory that the table takes."""
        return self._table.nbytes

    def fileno(self) -> int:
        """The file's descriptor, after all hashes have been handed to the system."""
        self._file.flush()
        return self._file.fileno()

    def add(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Add all hashes; True for each that was not there, nor earlier among these."""
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
        """Build the table anew from the file, in blocks."""
        self._table = np.zeros(0, dtype=np.uint64)
        self._table = np.zeros(capacity, dtype=np.uint64)
        self._file.seek(0)
        while block := self._file.read(BLOCK * HASH_BYTES):
            self._insert(np.frombuffer(block, dtype="<u8").astype(np.uint64))

    def _insert(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Put distinct hashes into the table; True for each that was not there."""
        absent = np.zeros(len(hashes), dtype=np.bool_)
        pending = np.arange(len(hashes))
        probe = 0
        while pending.size:
            wanted = hashes[pending]
            slots = self._slots(wanted, probe)
            empty = self._table[slots] == 0
            # Several hashes may want one empty slot: the last stays, the others probe on.
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
