"""The training loop: steps, checkpoints, validations, and a clean shutdown in every case."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from transept.data.batching.plan import Position
from transept.errors import TranseptError
from transept.runtime.distributed import World
from transept.runtime.interrupt import StopRequest
from transept.training.batches import Batch, MicroBatch
from transept.training.config import CheckpointConfig, TrainingConfig, ValidationConfig
from transept.training.observers import Observer
from transept.training.quality import Quality
from transept.training.state import Progress
from transept.training.update import StepValues, Update

Outcome = Literal["finished", "no longer improving", "stopped", "out of time"]


@dataclass(frozen=True, slots=True)
class Validation:
    """Means over the target tokens of a development set."""

    loss: float
    """The loss with label smoothing, as in training."""
    nll: float
    """−log p, without label smoothing."""
    tokens: int

    @property
    def perplexity(self) -> float:
        """Exp of the mean −log p per token, without label smoothing."""
        return math.exp(min(self.nll, 700.0))


@torch.no_grad()
def validate(update: Update, batches: Iterable[tuple[MicroBatch, int]]) -> Validation:
    """Evaluate the network on (batch, target tokens) pairs, without dropout.

    With several ranks, each passes its share of the batches. All get the means over all batches.
    """
    update.model.eval()
    world = update.runtime.world
    sums = torch.zeros(3, dtype=torch.float64, device=update.runtime.device)
    with update.averaged():
        for batch, n_target_tokens in batches:
            world.pulse.at("validating")
            sums[:2] += torch.stack(update.objective(batch))
            sums[2] += n_target_tokens
    smoothed, nll, tokens = world.total(sums).tolist()
    return Validation(smoothed / tokens, nll / tokens, int(tokens))


@dataclass(slots=True)
class Trainer:
    """Trains until there is a reason to stop. Takes constructed objects, not a config file."""

    update: Update
    data: Callable[[Position], Iterator[Batch]]
    save: Callable[[Progress], None]
    """Writes a checkpoint from which the run can resume."""
    validate: Callable[[], Validation] | None
    measure_quality: Callable[[], Quality] | None
    """Translates the development set and scores the translations."""
    observers: Sequence[Observer]
    training: TrainingConfig
    validation: ValidationConfig
    checkpoint: CheckpointConfig
    peak_flops: float
    """Peak FLOP/s of the device, to compute the model FLOPs utilization (MFU)."""

    def run(self, progress: Progress, stop: StopRequest, minutes: float | None = None) -> Outcome:
        """Continue from `progress` until the last step, early stopping or the end of `minutes`."""
        clock = _Clock(progress.seconds, minutes)
        pace = _Pace(clock)
        consensus = _RankConsensus(self.world, stop, clock, 60 * self.checkpoint.after_minutes)
        data = self.data(progress.position)
        # An earlier call may have stopped early: then there is nothing to do.
        reason = self._reason_to_stop(progress, _Decision())
        while reason is None and progress.step < self.training.max_steps:
            self.world.pulse.at("reading data", progress.step + 1)
            batch = next(data)
            self.world.pulse.at("computing")
            values = self._step(progress, batch, clock)
            pace.count(batch)
            if progress.step == 1 or self._is_due(progress.step, self.training.log_every):
                self._log(progress, batch, values, pace)
            with pace.paused():
                self._validate_if_due(progress)
                self._measure_quality_if_due(progress)
                save = self._time_to_save(progress, clock)
                decision = consensus.decide(progress.step, save)
                reason = self._reason_to_stop(progress, decision)
                progress.regular = self._is_regular(progress.step, decision, reason)
                best = progress.best_step == progress.step and not decision.early
                if reason or best or progress.regular:
                    self._save(progress, clock)
        outcome: Outcome = reason or "finished"
        self._notify("end", step=progress.step, outcome=outcome, seconds=clock.seconds)
        return outcome

    @property
    def world(self) -> World:
        """The ranks that train together."""
        return self.update.runtime.world

    def _step(self, progress: Progress, batch: Batch, clock: "_Clock") -> StepValues:
        values = self.update(progress.step + 1, batch.micro_batches, batch.header.n_target_tokens)
        progress.step += 1
        progress.position = batch.header.next
        progress.source_tokens += batch.header.n_source_tokens
        progress.target_tokens += batch.header.n_target_tokens
        progress.seconds = clock.seconds
        return values

    def _is_due(self, step: int, every: int) -> bool:
        return step % every == 0 or step == self.training.max_steps

    def _is_regular(self, step: int, decision: "_Decision", reason: Outcome | None) -> bool:
        """Whether an interval ends here, or the run itself, by steps or by time."""
        if step == self.training.max_steps or reason == "no longer improving":
            return True
        if reason == "out of time" and self.checkpoint.by_clock:
            return True
        every = self.checkpoint.every_steps
        due = decision.save or (every is not None and step % every == 0)
        return due and not decision.early

    def _time_to_save(self, progress: Progress, clock: "_Clock") -> bool:
        if not self.checkpoint.by_clock:
            return False
        since = clock.seconds - progress.regular_seconds
        whole_run = clock.seconds * self.training.max_steps / progress.step
        return since >= self.checkpoint.seconds_between(whole_run)

    def _log(self, progress: Progress, batch: Batch, values: StepValues, pace: "_Pace") -> None:
        """Read the values from the device. Only here does the host wait for it."""
        numbers = torch.stack(list(values))
        self.world.total(numbers[:2])
        smoothed, nll, norm, suppressed, in_a_row = numbers.tolist()
        progress.suppressed = int(suppressed)
        self._notify(
            "step",
            step=progress.step,
            epoch=progress.position.epoch,
            batch=batch.header.hash[:16],
            loss=smoothed,
            nll=nll,
            lr=self.update.schedule(progress.step),
            gradient_norm=norm,
            suppressed=progress.suppressed,
            source_tokens=progress.source_tokens,
            target_tokens=progress.target_tokens,
            **pace.since_last(self.peak_flops),
        )
        if in_a_row >= self.training.max_suppressed:
            raise TranseptError(
                f"step {progress.step}: the gradients of {int(in_a_row)} steps in a row were not "
                "finite numbers, so these steps were skipped. Resume from an earlier checkpoint "
                "with a lower schedule.factor, a longer warm-up or training.clip_norm=1.0; or "
                "check the data with `transept info`"
            )

    def _validate_if_due(self, progress: Progress) -> None:
        if self.validate is None or not self._is_due(progress.step, self.validation.every_steps):
            return
        result = self.validate()
        self._notify(
            "validation",
            step=progress.step,
            loss=result.loss,
            nll=result.nll,
            perplexity=result.perplexity,
            tokens=result.tokens,
            best=progress.is_best("nll", result.nll),
        )

    def _measure_quality_if_due(self, progress: Progress) -> None:
        every = self.validation.bleu_every_steps
        if self.measure_quality is None or every is None or not self._is_due(progress.step, every):
            return
        found = self.measure_quality()
        # Only one of the two can be the metric of the run.
        best = progress.is_best("bleu", found.bleu) or progress.is_best("chrf", found.chrf)
        self._notify("quality", step=progress.step, **dataclasses.asdict(found), best=best)

    def _reason_to_stop(self, progress: Progress, decision: "_Decision") -> Outcome | None:
        patience = self.validation.patience
        if patience is not None and progress.stale_validations >= patience:
            return "no longer improving"
        if decision.stop:
            return "stopped"
        return "out of time" if decision.out_of_time else None

    def _save(self, progress: Progress, clock: "_Clock") -> None:
        progress.seconds = clock.seconds
        if progress.regular:
            progress.regular_seconds = progress.seconds
        self.world.pulse.at("saving")
        self.save(progress)
        self._notify("checkpoint", step=progress.step, seconds=clock.seconds)

    def _notify(self, kind: str, **values: Any) -> None:
        for observer in self.observers:
            observer.observe({"kind": kind} | values)


class _Decision(NamedTuple):
    """What all ranks do, because at least one requested it."""

    stop: bool = False
    out_of_time: bool = False
    save: bool = False
    early: bool = False
    """It is too early for checkpoints (`checkpoint.after_minutes`)."""


class _RankConsensus:
    """Makes all ranks stop and save after the same step.

    A signal may reach only some ranks, and only rank 0 reads the clock, so the ranks must
    communicate. Because they wait for each other, they do so about once per second. A single
    process decides after every step.
    """

    def __init__(self, world: World, stop: StopRequest, clock: "_Clock", saves_from: float) -> None:
        self._world, self._stop, self._clock = world, stop, clock
        self._saves_from, self._early = saves_from, False
        self._next, self._pause = 0, 1
        self._since = time.monotonic()

    def decide(self, step: int, save: bool) -> _Decision:
        """What all ranks do after this step; `save`: whether a checkpoint is due on this rank."""
        if step < self._next:
            return _Decision(early=self._early)
        world = self._world
        world.pulse.at("agreeing")
        stop, out_of_time, due, early, pause = world.agree(
            [
                bool(self._stop),
                world.leads and self._clock.out_of_time,
                world.leads and save,
                world.leads and self._clock.seconds < self._saves_from,
                world.leads and self._steps_per_second(),
            ]
        )
        self._next, self._pause, self._since = step + pause, pause, time.monotonic()
        self._early = bool(early)
        if stop:
            world.pulse.agreed()
        return _Decision(bool(stop), bool(out_of_time), bool(due), self._early)

    def _steps_per_second(self) -> int:
        """An estimate that grows slowly: the first steps may be faster than later ones."""
        if not self._world.joined:
            return 1
        elapsed = time.monotonic() - self._since
        return max(1, int(min(2.0, 1 / elapsed) * self._pause))


class _Clock:
    """Training time of this process and of the whole run."""

    def __init__(self, before: float, minutes: float | None) -> None:
        self._start = time.monotonic()
        self._before = before
        self._end = None if minutes is None else self._start + 60 * minutes

    @property
    def seconds(self) -> float:
        """Seconds of training, resumes included."""
        return self._before + time.monotonic() - self._start

    @property
    def out_of_time(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


@dataclass(slots=True)
class _Pace:
    """Tokens and FLOPs since the last log line."""

    clock: _Clock
    source_tokens: int = 0
    target_tokens: int = 0
    positions: int = 0
    flops: float = 0.0
    since: float = dataclasses.field(default_factory=time.monotonic)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time spent in this context."""
        start = time.monotonic()
        yield
        self.since += time.monotonic() - start

    def count(self, batch: Batch) -> None:
        self.source_tokens += batch.header.n_source_tokens
        self.target_tokens += batch.header.n_target_tokens
        self.positions += batch.header.n_positions
        self.flops += batch.flops

    def since_last(self, peak_flops: float) -> dict[str, float]:
        now = time.monotonic()
        elapsed = now - self.since
        values = {
            "tokens_per_second": self.target_tokens / elapsed,
            "padding": 1 - (self.source_tokens + self.target_tokens) / self.positions,
            "mfu": self.flops / elapsed / peak_flops,
            "seconds": self.clock.seconds,
        }
        self.source_tokens = self.target_tokens = self.positions = 0
        self.flops, self.since = 0.0, now
        return values
