"""How well a plan fills its batches: what `transept info` shows of a corpus."""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from transept.data.batching.plan import Plan
from transept.data.batching.window import MicroPlan


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
        "source_places": micro.source_places,
        "target_tokens": int(micro.pairs.targets.sum()),
        "target_places": micro.target_places,
    }
