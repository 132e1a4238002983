"""Several corpora as one: the pairs of an epoch and their ids."""

import hashlib
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from transept.errors import DataError

Numbers = NDArray[np.int64]


class PairCorpus(Protocol):
    """The corpus interface that batching needs. `data.shards.Corpus` implements it."""

    @property
    def hash(self) -> str:
        """Equal hashes mean equal sentences in the same order."""

    @property
    def source_lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each source sentence, including EOS."""

    @property
    def target_lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each target sentence, including EOS."""

    def __len__(self) -> int: ...

    def source(self, index: int) -> NDArray[Any]:
        """Return the ids of a source sentence, ending with EOS."""

    def target(self, index: int) -> NDArray[Any]:
        """Return the ids of a target sentence, ending with EOS."""


class Mixture:
    """The pairs of all corpora, numbered consecutively; each is seen `weight` times per epoch."""

    def __init__(self, corpora: Sequence[PairCorpus], weights: Sequence[float] = ()) -> None:
        self.corpora = tuple(corpora)
        self.weights = tuple(map(float, weights)) or (1.0,) * len(self.corpora)
        if len(self.weights) != len(self.corpora):
            raise DataError(
                f"{len(self.corpora)} corpora but {len(self.weights)} weights; give one per corpus"
            )
        self._starts = np.cumsum([0, *map(len, self.corpora)])
        self.source_lengths = self._lengths("source")
        self.target_lengths = self._lengths("target")

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __reduce__(self) -> tuple[Any, ...]:
        # The receiving process computes the lengths again instead of unpickling them.
        return Mixture, (self.corpora, self.weights)

    def epoch(self, fitting: NDArray[np.bool_], *key: Any) -> Numbers:
        """Return the pairs of an epoch: each fitting pair, `weight` times.

        With a weight of 2.3 each pair occurs twice, and a 30 % sample, chosen by the key, once
        more.
        """
        parts = [np.zeros(0, dtype=np.int64)]
        for which, (start, stop) in enumerate(pairwise(self._starts)):
            pairs = start + np.flatnonzero(fitting[start:stop])
            times, more = _times(self.weights[which], len(pairs))
            parts += [pairs] * times
            if more:
                parts.append(pairs[permutation(len(pairs), *key, which)[:more]])
        return np.concatenate(parts)

    def epoch_size(self, fitting: NDArray[np.bool_]) -> int:
        """Return the number of pairs per epoch, the same for every epoch."""
        size = 0
        for weight, (start, stop) in zip(self.weights, pairwise(self._starts), strict=True):
            n = int(np.count_nonzero(fitting[start:stop]))
            times, more = _times(weight, n)
            size += n * times + more
        return size

    def left_out(self, fitting: NDArray[np.bool_]) -> tuple[int, ...]:
        """Return how many pairs of each corpus do not fit."""
        return tuple(
            int(np.count_nonzero(~fitting[start:stop])) for start, stop in pairwise(self._starts)
        )

    def read(self, side: Literal["source", "target"], pairs: Numbers) -> NDArray[np.int32]:
        """Return the concatenated ids of these pairs' sentences."""
        which = np.searchsorted(self._starts, pairs, side="right") - 1
        inside = (pairs - self._starts[which]).tolist()
        read = [getattr(corpus, side) for corpus in self.corpora]
        views = [read[corpus](index) for corpus, index in zip(which.tolist(), inside, strict=True)]
        ids = np.concatenate([_NOTHING, *views], dtype=np.int32, casting="unsafe")
        expected = self.source_lengths if side == "source" else self.target_lengths
        if len(ids) != expected[pairs].sum():
            raise DataError(
                f"the {side} sentences of a corpus do not have the recorded lengths "
                f"({[repr(corpus) for corpus in self.corpora]}); prepare it again"
            )
        return ids

    def _lengths(self, side: str) -> NDArray[np.int32]:
        parts = [getattr(corpus, f"{side}_lengths") for corpus in self.corpora]
        lengths = np.concatenate([_NOTHING, *parts], dtype=np.int32, casting="unsafe")
        if (lengths < 1).any():
            pair = int(np.argmax(lengths < 1))
            which = int(np.searchsorted(self._starts, pair, side="right")) - 1
            raise DataError(
                f"the {side} sentence of pair {pair - self._starts[which]} of corpus {which} is "
                "empty and lacks even EOS; prepare the corpus again"
            )
        return lengths


def _times(weight: float, n: int) -> tuple[int, int]:
    """Return how often an epoch contains all n pairs, and how many of them once more."""
    whole, rest = divmod(weight, 1.0)
    return int(whole), round(rest * n)


_NOTHING = np.zeros(0, dtype=np.int32)


def digest(*key: Any) -> str:
    """Return the sha256 of JSON-serializable values."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def permutation(n: int, *key: Any) -> NDArray[np.int64]:
    """Return range(n) in an order that depends only on the key."""
    # numpy guarantees a stable stream only for a bit generator's raw numbers, not for
    # `Generator.permutation`. Each number holds its index in the low bits, so that all are
    # distinct and every sorting algorithm gives the same order.
    seed = np.random.SeedSequence(int(digest(*key), 16))
    bits = np.uint64(n.bit_length())
    numbers = np.random.PCG64(seed).random_raw(n) >> bits << bits
    numbers |= np.arange(n, dtype=np.uint64)
    numbers.sort()
    return (numbers & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
