"""A corpus that was never written to disk."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transept.errors import DataError


class MemoryCorpus:
    """Pairs of sentences given as ids, each with its EOS."""

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} source sentences but {len(targets)} targets: give them in pairs"
            )
        self._sources = [np.asarray(ids, dtype=np.uint32) for ids in sources]
        self._targets = [np.asarray(ids, dtype=np.uint32) for ids in targets]
        self.source_lengths = _lengths(self._sources)
        self.target_lengths = _lengths(self._targets)
        self.hash = self._hash()

    def __len__(self) -> int:
        return len(self._sources)

    def source(self, index: int) -> NDArray[np.uint32]:
        """The ids of a source sentence."""
        return self._sources[index]

    def target(self, index: int) -> NDArray[np.uint32]:
        """The ids of a target sentence."""
        return self._targets[index]

    def _hash(self) -> str:
        contents = hashlib.sha256()
        for lengths, sentences in (
            (self.source_lengths, self._sources),
            (self.target_lengths, self._targets),
        ):
            contents.update(lengths.astype("<i8").tobytes())
            for ids in sentences:
                contents.update(ids.astype("<u4").tobytes())
        return contents.hexdigest()


def _lengths(sentences: list[NDArray[np.uint32]]) -> NDArray[np.int64]:
    return np.array([len(ids) for ids in sentences], dtype=np.int64)
