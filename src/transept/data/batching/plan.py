"""The batch plan: which pairs form which batch, before any text is read.

The plan is a pure function of the corpora (by hash and weight), the seed and the batch config.
It does not depend on the number of ranks and workers, so a run can resume exactly with another
number of them. An epoch is one shuffle of all its pairs, cut into windows. Each window is planned
separately, so resuming in the middle of an epoch costs planning one window.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from transept.config import as_table
from transept.data.batching.layouts import BatchPlan, MicroPlan, Pairs, Planner, by_length, packed
from transept.data.batching.mixture import Mixture, Numbers, digest, permutation
from transept.data.config import BatchConfig
from transept.errors import DataError

PLANNER_VERSION = 1
"""Incremented when a code change alters the plan for the same config."""

LAYOUTS: dict[str, Planner] = {"packed": packed, "by_length": by_length}


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the data: the number of complete epochs, windows and batches before it."""

    epoch: int = 0
    window: int = 0
    batch: int = 0
    earlier: tuple[tuple[int, int], ...] = ()
    """Batches consumed before the window was replanned: their number, and the micro-batches per
    batch, for each replanning."""

    def __post_init__(self) -> None:
        # JSON turns tuples into lists.
        object.__setattr__(self, "earlier", tuple((n, each) for n, each in self.earlier))

    def replanned(self, micro_batches: int) -> "Position":
        """Return the same position for when the micro-batches per batch change mid-window.

        Args:
            micro_batches: The number of micro-batches per batch so far.
        """
        if self.batch == 0:
            return self
        return replace(self, batch=0, earlier=(*self.earlier, (self.batch, micro_batches)))


START = Position()


class Plan:
    """All batches of all epochs, in order, from any position."""

    def __init__(self, mixture: Mixture, config: BatchConfig, seed: int) -> None:
        self.mixture = mixture
        self.config = config
        hashes = [corpus.hash for corpus in mixture.corpora]
        self._key = digest(PLANNER_VERSION, hashes, mixture.weights, seed)
        self._fitting = (mixture.source_lengths <= config.max_length) & (
            mixture.target_lengths <= config.max_length
        )
        self._order: tuple[int, Numbers] | None = None
        self.n_pairs = mixture.epoch_size(self._fitting)
        if self.n_pairs == 0:
            corpora = "1 corpus" if len(hashes) == 1 else f"{len(hashes)} corpora"
            raise DataError(
                f"no pair to plan: of {len(mixture):,} pairs in {corpora}, "
                f"{sum(self.left_out):,} have a side longer than max_length = {config.max_length}"
            )

    @property
    def fingerprint(self) -> str:
        """Equal fingerprints mean equal plans. Positions are valid only within one plan."""
        return digest(self._key, as_table(self.config))

    @property
    def left_out(self) -> tuple[int, ...]:
        """The number of pairs of each corpus that are longer than `max_length`."""
        return self.mixture.left_out(self._fitting)

    @property
    def n_windows(self) -> int:
        """Windows per epoch, equal in size: a small last one would fill its batches poorly."""
        return max(1, round(self.n_pairs / self.config.window))

    def window(
        self, epoch: int, window: int, earlier: Sequence[tuple[int, int]] = ()
    ) -> list[BatchPlan]:
        """Return the global batches of a window, or of its remainder after the `earlier` ones."""
        order = self._pairs_of(epoch)
        start, stop = (self.n_pairs * bound // self.n_windows for bound in (window, window + 1))
        numbers = order[start:stop]
        lengths = self.mixture.source_lengths[numbers], self.mixture.target_lengths[numbers]
        pairs = Pairs(numbers, *lengths)
        layout = LAYOUTS[self.config.layout]

        def shuffle(n: int, purpose: str) -> Numbers:
            return permutation(n, self._key, epoch, window, purpose)

        for taken, micro_batches in earlier:
            config = replace(self.config, micro_batches=micro_batches)
            left = layout(pairs, config, shuffle)[taken:]
            pairs = Pairs.joined([pairs[:0], *(m.pairs for batch in left for m in batch.micro)])
        return layout(pairs, self.config, shuffle)

    def batches(
        self, start: Position = START, epochs: int | None = None
    ) -> Iterator[tuple[Position, BatchPlan]]:
        """Yield each batch from `start` on, with the position after it.

        Args:
            start: The first batch to yield.
            epochs: Number of the epoch to stop before. None: never stop.
        """
        at = start
        while epochs is None or at.epoch < epochs:
            batches = self._window_at(at)
            following = self._next_window(at)
            for number in range(at.batch, len(batches)):
                last = number + 1 == len(batches)
                yield following if last else replace(at, batch=number + 1), batches[number]
            at = following

    def _window_at(self, at: Position) -> list[BatchPlan]:
        known = at.epoch >= 0 and 0 <= at.window < self.n_windows
        batches = self.window(at.epoch, at.window, at.earlier) if known else []
        if not 0 <= at.batch < len(batches):
            raise DataError(
                f"{at} is not in this plan of {self.n_windows} windows per epoch: it was saved "
                "with other corpora or another batch config; resume with those, or start over"
            )
        return batches

    def _next_window(self, at: Position) -> Position:
        if at.window + 1 < self.n_windows:
            return Position(at.epoch, at.window + 1)
        return Position(at.epoch + 1)

    def _pairs_of(self, epoch: int) -> Numbers:
        """Return the pairs of an epoch in order. The last requested epoch is cached."""
        if self._order is None or self._order[0] != epoch:
            pairs = self.mixture.epoch(self._fitting, self._key, epoch, "weights")
            self._order = epoch, pairs[permutation(len(pairs), self._key, epoch, "order")]
        return self._order[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """How many positions in the batches of some windows hold a token."""

    windows: int
    """The number of measured windows."""
    windows_of_epoch: int
    batches: int
    pairs: int
    source_tokens: int
    source_positions: int
    target_tokens: int
    target_positions: int
    left_out: tuple[int, ...]
    """Pairs of each corpus that are longer than `max_length`."""

    @property
    def source(self) -> float:
        """The fraction of source positions that hold a token."""
        return self.source_tokens / self.source_positions

    @property
    def target(self) -> float:
        """The fraction of target positions that hold a token."""
        return self.target_tokens / self.target_positions

    @property
    def batches_of_epoch(self) -> int:
        """Batches per epoch, estimated unless all windows were measured."""
        return round(self.batches * self.windows_of_epoch / self.windows)


def measure(plan: Plan, windows: int | None = None) -> Fill:
    """Measure the fill of the first epoch, or of its first `windows`."""
    measured = min(windows or plan.n_windows, plan.n_windows)
    sums: Counter[str] = Counter()
    for window in range(measured):
        batches = plan.window(0, window)
        sums["batches"] += len(batches)
        for micro in chain.from_iterable(batch.micro for batch in batches):
            sums.update(_figures(micro))
    return Fill(windows=measured, windows_of_epoch=plan.n_windows, left_out=plan.left_out, **sums)


def _figures(micro: MicroPlan) -> dict[str, int]:
    return {
        "pairs": len(micro.pairs),
        "source_tokens": int(micro.pairs.sources.sum()),
        "source_positions": micro.shape.source_positions,
        "target_tokens": int(micro.pairs.targets.sum()),
        "target_positions": micro.shape.target_positions,
    }
