"""HF MarianMT trained on a recipe's prepared corpora: the baseline of a recipe's scores.

It gets the same ids, size, schedule, label smoothing, dropout and optimizer, padded batches of
similar length, and bfloat16. It has as few shapes as possible with little padding, each of which is
run once before the clock starts. The average of its last weights is converted to our network, which
computes the same, so that the same search translates the test sets.

    python benchmarks/peer_experiment.py europarl-en-de-base --prepared WORK --work BASELINE \
        --minutes 22 [--pause-after 9]
    python benchmarks/peer_experiment.py europarl-en-de-base --prepared WORK --work BASELINE \
        --target-tokens 180000000

WORK is the work directory of the same recipe, which must have been run at least `--until prepare`.
With --pause-after, the script exits with code 75, and the same command resumes.
`docs/making/results.py` reads BASELINE/record.json and compares it with that of WORK.
"""

import argparse
import dataclasses
import json
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from marian import from_marian, like_marian, new_marian
from numpy.typing import NDArray
from padded import MULTIPLE, Bucketed, Padded, Shape, ahead
from torch import Tensor
from torch.nn import functional as F
from transformers import __version__ as transformers_version

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.pipeline import run_stage
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Watchers
from transept.apps.recipes.train import flops_per_target_token, sustained_flops
from transept.checkpoint import CONFIG, WEIGHTS, write_directory
from transept.data.batching.mixture import Mixture
from transept.data.shards import Corpus
from transept.errors import RESUMABLE
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.runtime.products import products_in
from transept.training.observers import METRICS
from transept.training.update import Schedule

STATE = "peer.pt"
VALIDATIONS = 24


# --- training --------------------------------------------------------------------------------


@dataclass
class Progress:
    """The progress of the baseline's training."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    seconds: float = 0.0
    source_tokens: int = 0
    target_tokens: int = 0
    warm_seconds: float = 0.0
    snapshots: list[dict[str, Tensor]] = field(default_factory=list)
    snapshot_steps: list[int] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)


class Baseline:
    """MarianMT and its training."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.runtime = Runtime.choose(experiment.training.device, experiment.training.precision)
        torch.manual_seed(experiment.training.seed)
        self.model = new_marian(experiment.model).to(self.runtime.device)
        adam, schedule = experiment.adam, experiment.schedule
        self.adam = torch.optim.Adam(
            [p for p in self.model.parameters() if p.requires_grad],
            betas=(adam.beta1, adam.beta2),
            eps=adam.epsilon,
            fused=True,
        )
        self.schedule = Schedule(experiment.model.d_model, schedule.warmup_steps, schedule.factor)
        data = experiment.data
        corpora = [Corpus.open(entry.path) for entry in data.train]
        batch = experiment.batch
        budget = min(batch.source_tokens, batch.target_tokens)
        mixture = Mixture(corpora, [entry.weight for entry in data.train])
        self.train = Bucketed(mixture, budget, batch.max_length)
        assert data.dev is not None
        self.dev = Bucketed(Mixture([Corpus.open(data.dev)]), budget, 10**9)
        self.loss_sum = torch.zeros((), device=self.runtime.device)

    def loss(self, batch: Padded, smoothing: float, reduction: str) -> Tensor:
        device = self.runtime.device
        source, target = (x.to(device, non_blocking=True) for x in (batch.source, batch.target))
        begin = target.new_full((len(target), 1), self.experiment.model.bos_id)
        with products_in(self.runtime.precision, self.runtime.device):
            logits = self.model(
                input_ids=source,
                attention_mask=(source != 0).long(),
                decoder_input_ids=torch.cat([begin, target[:, :-1]], dim=1),
            ).logits
            return F.cross_entropy(
                logits.flatten(0, 1),
                target.flatten(),
                ignore_index=0,
                label_smoothing=smoothing,
                reduction=reduction,
            )

    def step(self, number: int, batch: Padded) -> None:
        self.model.train()
        self.adam.zero_grad(set_to_none=True)
        self.loss(batch, self.experiment.loss.label_smoothing, "mean").backward()
        for group in self.adam.param_groups:
            group["lr"] = self.schedule(number)
        self.adam.step()

    @torch.no_grad()
    def validate(self) -> float:
        """Mean −log p per token on the development set."""
        self.model.eval()
        total, tokens = torch.zeros((), dtype=torch.float64, device=self.runtime.device), 0
        for pairs in self.dev.cuts(np.arange(len(self.dev.mixture))):
            batch = self.dev.pad(pairs, pin=False)
            total += self.loss(batch, 0.0, "sum")
            tokens += batch.target_tokens
        return float(total) / tokens

    def warm_up(self) -> float:
        """Run every shape of an epoch once, without training; return the seconds it took."""
        begin = time.monotonic()
        largest: dict[Shape, NDArray[np.int64]] = {}
        for pairs in self.train.epoch(self.experiment.training.seed, 0):
            lengths = (self.train.mixture.source_lengths, self.train.mixture.target_lengths)
            widths = [-(-int(side[pairs].max()) // MULTIPLE) * MULTIPLE for side in lengths]
            largest.setdefault(Shape(len(pairs), *widths), pairs)
        self.model.train()
        for pairs in largest.values():
            self.loss(self.train.pad(pairs, pin=False), 0.1, "mean").backward()
            self.adam.zero_grad(set_to_none=True)
        self.validate()
        self.runtime.synchronize()
        print(f"{len(largest)} shapes run once, {time.monotonic() - begin:.1f} s", flush=True)
        return time.monotonic() - begin


@dataclass(frozen=True)
class Budget:
    """When to stop: after some minutes, or after a number of target tokens."""

    minutes: float | None
    target_tokens: int | None
    pause_after: float | None

    def share(self, progress: Progress) -> float:
        """The completed share of the run, from 0 to 1."""
        if self.minutes is not None:
            return progress.seconds / (60 * self.minutes)
        assert self.target_tokens is not None
        return progress.target_tokens / self.target_tokens


def train(
    baseline: Baseline, progress: Progress, budget: Budget, averaging: recipe.Averaging
) -> bool:
    """Train; return False if it was paused before the end."""
    begin = time.monotonic()
    progress.warm_seconds += baseline.warm_up()
    start = time.monotonic() - progress.seconds
    seed, pin = baseline.experiment.training.seed, baseline.runtime.device.type == "cuda"
    due = [1 - k * averaging.interval for k in range(averaging.last)]
    while True:
        cuts = list(baseline.train.epoch(seed, progress.epoch))[progress.batch :]
        for batch in ahead(baseline.train.pad(pairs, pin) for pairs in cuts):
            baseline.step(progress.step + 1, batch)
            progress.step += 1
            progress.batch += 1
            progress.source_tokens += int((batch.source != 0).sum())
            progress.target_tokens += batch.target_tokens
            if progress.step % 10 == 0:
                baseline.runtime.synchronize()
            progress.seconds = time.monotonic() - start
            share = budget.share(progress)
            if share * VALIDATIONS >= len(progress.curve) + 1:
                note(baseline, progress)
            wanted = sum(share >= at for at in due)
            if wanted > len(progress.snapshots):
                snapshot(baseline, progress)
            progress.seconds = time.monotonic() - start
            if share >= 1:
                return True
            if budget.pause_after and time.monotonic() - begin >= 60 * budget.pause_after:
                return False
        progress.epoch, progress.batch = progress.epoch + 1, 0


def note(baseline: Baseline, progress: Progress) -> None:
    nll = baseline.validate()
    point = {
        "step": progress.step,
        "seconds": progress.seconds,
        "target_tokens": progress.target_tokens,
        "nll": nll,
    }
    progress.curve.append(point)
    speed = progress.target_tokens / progress.seconds
    print(
        f"{progress.seconds:7.1f} s  step {progress.step:,}  epoch {progress.epoch}  "
        f"{speed:,.0f} tok/s  validation nll {nll:.4f}",
        flush=True,
    )


def snapshot(baseline: Baseline, progress: Progress) -> None:
    state = baseline.model.state_dict()
    progress.snapshots.append({name: value.float().cpu() for name, value in state.items()})
    progress.snapshot_steps.append(progress.step)


# --- the directory ---------------------------------------------------------------------------


def restore(path: Path, baseline: Baseline) -> Progress:
    if not path.exists():
        return Progress()
    saved = torch.load(path, map_location="cpu", weights_only=True)
    baseline.model.load_state_dict(saved["model"])
    baseline.adam.load_state_dict(saved["adam"])
    print(f"resuming from step {saved['progress']['step']:,}", flush=True)
    return Progress(**saved["progress"])


def save(path: Path, baseline: Baseline, progress: Progress) -> None:
    shallow = {f.name: getattr(progress, f.name) for f in dataclasses.fields(progress)}
    state = {"model": baseline.model.state_dict(), "adam": baseline.adam.state_dict()}
    torch.save({**state, "progress": shallow}, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def copy_prepared(work: Path, run: RecipeRun) -> None:
    """Copy the first stage. An error is raised if it was prepared for another recipe."""
    if run.records.read("prepare") is None:
        for name in ("vocabulary", "data", "tests"):
            shutil.copytree(work / name, run.directory / name, dirs_exist_ok=True)
        run.records.keep("prepare", json.loads((work / "records/prepare.json").read_bytes()))
    run_stage(run, "prepare", Watchers())


def conclude(run: RecipeRun, baseline: Baseline, progress: Progress, budget: Budget) -> None:
    """Write the average of the last weights as our network, and the records for `report`."""
    begin = time.monotonic()
    sums: dict[str, Tensor] = {}
    for one in progress.snapshots:
        for name, value in one.items():
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + value
    mean = {name: (total / len(progress.snapshots)).float() for name, total in sums.items()}
    network = like_marian(baseline.experiment.model)
    experiment = dataclasses.replace(baseline.experiment, model=network)
    shutil.rmtree(run.model, ignore_errors=True)
    write_directory(
        run.model,
        tensors={WEIGHTS: from_marian(mean, network)},
        texts={CONFIG: config.dump(experiment)},
        folders={"tokenizer": run.vocabulary},
        about={"step": progress.step, "averaged_steps": progress.snapshot_steps},
    )
    averaged, found = {"steps": progress.snapshot_steps}, {"weights": run.weights}
    run.records.write("average", averaged, found, time.monotonic() - begin)
    results = {
        "outcome": "finished",
        "step": progress.step,
        "seconds": progress.seconds,
        "warm_seconds": progress.warm_seconds,
        "source_tokens": progress.source_tokens,
        "target_tokens": progress.target_tokens,
        "flops_per_target_token": flops_per_target_token(baseline.experiment),
        "sustained_flops": sustained_flops(experiment),
        "transformers": transformers_version,
    }
    inputs = {
        "corpora": {entry.path.name: Corpus.open(entry.path).hash
                    for entry in baseline.experiment.data.train},
        "minutes": budget.minutes,
        "target_tokens": budget.target_tokens,
        "seed": baseline.experiment.training.seed,
    }  # fmt: skip
    run.records.write("train", inputs, results, seconds=None)
    log(run.training / METRICS, progress)


def log(path: Path, progress: Progress) -> None:
    """Write the curve in the format of our metrics log."""
    lines = []
    for point in progress.curve:
        step = {key: point[key] for key in ("step", "seconds", "target_tokens")}
        lines.append({"kind": "step", **step})
        lines.append({"kind": "validation", "step": point["step"], "nll": point["nll"]})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*", help="overrides with which the recipe was prepared")
    parser.add_argument(
        "--prepared", type=Path, required=True, help="work directory of a prepared recipe"
    )
    parser.add_argument("--work", type=Path, required=True, help="work directory of the baseline")
    parser.add_argument("--minutes", type=float, help="minutes of training")
    parser.add_argument("--target-tokens", type=int, help="or number of target tokens to train on")
    parser.add_argument("--pause-after", type=float, help="pause after this many minutes")
    options = parser.parse_args()
    if (options.minutes is None) == (options.target_tokens is None):
        parser.error("give --minutes or --target-tokens")
    loaded = recipe.load(options.recipe, (*options.overrides, "package=none"))
    run = RecipeRun(
        name=recipe.find(options.recipe).stem,
        recipe=loaded,
        directory=options.work,
        minutes=options.minutes,
        system="HF MarianMT",
    )
    run.begin()
    copy_prepared(options.prepared, run)
    budget = Budget(options.minutes, options.target_tokens, options.pause_after)
    if run.records.read("average") is None:
        baseline = Baseline(run.experiment())
        progress = restore(run.directory / STATE, baseline)
        if not train(baseline, progress, budget, loaded.average):
            save(run.directory / STATE, baseline, progress)
            print("Paused. The same command resumes.")
            sys.exit(RESUMABLE)
        run.training.mkdir(exist_ok=True)
        conclude(run, baseline, progress, budget)
        del baseline
    for stage in ("decode", "score", "report"):
        done = run_stage(run, stage, Watchers())
        assert done is not None
        print(done.what, flush=True)


if __name__ == "__main__":
    main()
