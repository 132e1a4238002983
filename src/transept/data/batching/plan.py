"""The batch plan: which pairs make which batch, before any of them is read.

The plan is a pure function of the corpora (by hash and weight), the seed and the batch config.
The number of ranks and workers has no say in it, so that a run continues exactly on another
number of them. An epoch is one shuffle of all its pairs, cut into windows; a window is planned by
itself, so that to continue in the middle costs planning one window.
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
"""Goes up by 1 when a change of the code makes another plan of the same config."""

LAYOUTS: dict[str, Planner] = {"packed": packed, "by_length": by_length}


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the data: so many whole epochs, windows and batches lie before it."""

    epoch: int = 0
    window: int = 0
    batch: int = 0
    earlier: tuple[tuple[int, int], ...] = ()
    """Batches of the window that were taken before it was planned anew: how many, and of how many
    micro-batches they were."""

    def __post_init__(self) -> None:
        # JSON turns tuples into lists.
        object.__setattr__(self, "earlier", tuple((n, each) for n, each in self.earlier))

    def planned_anew(self, micro_batches: int) -> "Position":
        """The same place, where the rest of the window is cut into another number of micro-batches.

        Args:
            micro_batches: How many the batches so far were cut into.
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
        """Equal fingerprints mean equal plans; positions of one mean nothing in another."""
        return digest(self._key, as_table(self.config))

    @property
    def left_out(self) -> tuple[int, ...]:
        """How many pairs of each corpus are longer than `max_length`."""
        return self.mixture.left_out(self._fitting)

    @property
    def n_windows(self) -> int:
        """Windows of an epoch, all of one size: a small one at the end would be filled badly."""
        return max(1, round(self.n_pairs / self.config.window))

    def window(
        self, epoch: int, window: int, earlier: Sequence[tuple[int, int]] = ()
    ) -> list[BatchPlan]:
        """The global batches of one window, or of what is left of it after the `earlier` ones."""
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
        """Each batch with the position after it, from `start` on.

        Args:
            start: Where to begin.
            epochs: End before the epoch of this number; without, never.
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
                f"{at} is not in this plan of {self.n_windows} windows an epoch: it was saved "
                "with other corpora or another batch config; continue with those, or start anew"
            )
        return batches

    def _next_window(self, at: Position) -> Position:
        if at.window + 1 < self.n_windows:
            return Position(at.epoch, at.window + 1)
        return Position(at.epoch + 1)

    def _pairs_of(self, epoch: int) -> Numbers:
        """The pairs of an epoch in their order; the last epoch asked for is kept."""
        if self._order is None or self._order[0] != epoch:
            pairs = self.mixture.epoch(self._fitting, self._key, epoch, "weights")
            self._order = epoch, pairs[permutation(len(pairs), self._key, epoch, "order")]
        return self._order[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Real tokens among the places of some windows' batches."""

    windows: int
    """Windows that were measured."""
    windows_of_epoch: int
    batches: int
    pairs: int
    source_tokens: int
    source_places: int
    target_tokens: int
    target_places: int
    left_out: tuple[int, ...]
    """Pairs of each corpus that are longer than `max_length`."""

    @property
    def source(self) -> float:
        """The share of source places that hold a token."""
        return self.source_tokens / self.source_places

    @property
    def target(self) -> float:
        """The share of target places that hold a token."""
        return self.target_tokens / self.target_places

    @property
    def batches_of_epoch(self) -> int:
        """Batches of an epoch; an estimate unless all of its windows were measured."""
        return round(self.batches * self.windows_of_epoch / self.windows)


def measure(plan: Plan, windows: int | None = None) -> Fill:
    """The fill of the first epoch, or of its first windows."""
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
        "source_places": micro.shape.source_places,
        "target_tokens": int(micro.pairs.targets.sum()),
        "target_places": micro.shape.target_places,
    }
