"""Padded batches of pairs of similar length, with few shapes, as usual for MarianMT."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transept.data.batching.mixture import Mixture

MULTIPLE = 8
"""Widths are rounded up to a multiple of this: few shapes, and fast on tensor cores."""
AHEAD = 8


@dataclass(frozen=True)
class Shape:
    """The shape of a padded batch. The number of rows depends on the wider side."""

    rows: int
    source: int
    target: int


@dataclass(frozen=True)
class Padded:
    """A batch of similar lengths, on the host."""

    source: Tensor
    target: Tensor
    target_tokens: int


class Bucketed:
    """A mixture in padded batches: sorted by both lengths, split when a side's budget is full."""

    def __init__(self, mixture: Mixture, budget: int, longest: int) -> None:
        self.mixture, self.budget = mixture, budget
        lengths = (mixture.source_lengths, mixture.target_lengths)
        self.fitting = (lengths[0] <= longest) & (lengths[1] <= longest)
        self._widths = [-(-side // MULTIPLE) * MULTIPLE for side in lengths]

    def cuts(self, pairs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Batches of pairs of the same widths; a remainder joins the next wider batch."""
        source, target = (side[pairs] for side in self._widths)
        order = pairs[np.lexsort((source, target, np.maximum(source, target)))]
        widest = np.maximum(*(side[order] for side in self._widths))
        cuts, start = [], 0
        while start < len(order):
            rows = max(1, self.budget // int(widest[start]))
            while rows > 1 and rows * int(widest[min(start + rows, len(order)) - 1]) > self.budget:
                rows -= 1
            cuts.append(order[start : start + rows])
            start += rows
        return cuts

    def epoch(self, seed: int, number: int) -> Iterator[NDArray[np.int64]]:
        """All pairs, each as often as the weight of its corpus, in a random order of batches."""
        chance = np.random.default_rng((seed, number))
        pairs = self.mixture.epoch(self.fitting, "peer", seed, number)
        cuts = self.cuts(chance.permutation(pairs))
        for index in chance.permutation(len(cuts)):
            yield cuts[index]

    def pad(self, pairs: NDArray[np.int64], pin: bool) -> Padded:
        def padded(side: Literal["source", "target"], lengths: NDArray[np.int32]) -> Tensor:
            width = -(-int(lengths.max()) // MULTIPLE) * MULTIPLE
            rows = np.zeros((len(pairs), width), dtype=np.int64)
            rows[np.arange(width) < lengths[:, None]] = self.mixture.read(side, pairs)
            tensor = torch.from_numpy(rows)
            return tensor.pin_memory() if pin else tensor

        sources, targets = self.mixture.source_lengths[pairs], self.mixture.target_lengths[pairs]
        return Padded(padded("source", sources), padded("target", targets), int(targets.sum()))


def ahead(batches: Iterator[Padded]) -> Iterator[Padded]:
    """The same batches, created by a thread while the device computes."""
    ready: queue.Queue[Padded | None] = queue.Queue(AHEAD)

    def fill() -> None:
        for batch in batches:
            ready.put(batch)
        ready.put(None)

    threading.Thread(target=fill, daemon=True).start()
    yield from iter(ready.get, None)
