"""Training speed on a GPU: target tokens per second and MFU, compared with HF MarianMT.

transept trains like `transept train`, from a prepared corpus on disk through the loader. MarianMT
gets the same corpus in padded batches of similar length, with bfloat16 and torch's fused Adam; each
of its shapes is run once before it is timed. Both run one after the other in one process. MFU
counts only real tokens, relative to the matrix peak measured in the same run.

    python benchmarks/gpu_training.py --corpus DIR [--quick] [--json FILE] [--curves]

`--curves` also trains with the fused and with the plain update, and compares their losses.
"""

import gc
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from marian import PAPER_DROPOUT, sized_marian
from measuring import Goal, Row, parser_of, report, seconds
from torch.nn import functional as F

from transept.assembly import train
from transept.data.config import CorpusConfig, DataConfig
from transept.data.shards import Corpus
from transept.experiment import Experiment
from transept.model.config import ModelConfig
from transept.runtime.device import Runtime
from transept.training.batches import training_flops
from transept.training.config import CheckpointConfig, TrainingConfig

MFU_GOALS = {"base": 0.50, "big": 0.65}
TIMES_MARIAN = 3.7
BUDGET = 25_000


@dataclass
class Collector:
    """Collects the log lines of a training."""

    lines: list[Mapping[str, Any]] = field(default_factory=list)

    def observe(self, line: Mapping[str, Any]) -> None:
        self.lines.append(line)

    def close(self) -> None:
        """Nothing to release."""

    def of(self, key: str) -> list[float]:
        return [line[key] for line in self.lines if line["kind"] == "step"]


def experiment(
    preset: str, corpus: Path, steps: int, kernels: Literal["auto", "plain"], seed: int = 1
) -> Experiment:
    vocab_size = Corpus.open(corpus).manifest.side("target").vocab_size
    return Experiment(
        model=ModelConfig.preset(preset, vocab_size=vocab_size),
        data=DataConfig(train=(CorpusConfig(path=corpus),), workers=4),
        training=TrainingConfig(max_steps=steps, log_every=25, kernels=kernels, seed=seed),
        checkpoint=CheckpointConfig(every_minutes=60.0),
    )


def run_transept(config: Experiment) -> Collector:
    """Train and return the log lines. The first ones are warm-up."""
    collector = Collector()
    with tempfile.TemporaryDirectory() as directory:
        train(config, Path(directory), observers=[collector])
    gc.collect()
    torch.cuda.empty_cache()
    return collector


# --- the baseline ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Padded:
    """A batch of similar lengths."""

    source: torch.Tensor
    target: torch.Tensor
    source_lengths: torch.Tensor
    target_lengths: torch.Tensor


def padded_batches(corpus: Corpus, n: int) -> list[Padded]:
    """Pairs of a shuffled pool, sorted by length and split by the budget; n random batches."""
    generator = torch.Generator().manual_seed(0)
    numbers = torch.randperm(len(corpus), generator=generator)[: n * BUDGET // 15]
    pairs = [(corpus.source(i), corpus.target(i)) for i in numbers.tolist()]
    pairs = [pair for pair in pairs if max(map(len, pair)) <= 250]
    pairs.sort(key=lambda pair: (max(map(len, pair)), len(pair[0])))
    cuts = list(_cut(pairs))
    chosen = torch.randperm(len(cuts), generator=generator)[:n].tolist()
    return [_pad(cuts[i]) for i in chosen]


def _cut(pairs: list[Any]) -> Iterator[list[Any]]:
    rows: list[Any] = []
    for pair in pairs:
        if rows and (len(rows) + 1) * max(max(map(len, p)) for p in (pair, rows[-1])) > BUDGET:
            yield rows
            rows = []
        rows.append(pair)


def _pad(rows: list[Any]) -> Padded:
    sides = [[torch.as_tensor(row[side].astype("int64")) for row in rows] for side in (0, 1)]
    source, target = (
        torch.nn.utils.rnn.pad_sequence(side, batch_first=True).cuda() for side in sides
    )
    lengths = [torch.tensor([len(one) for one in side]) for side in sides]
    return Padded(source, target, lengths[0], lengths[1])


class Marian:
    """MarianMT, trained as is usual."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.model = sized_marian(config, **PAPER_DROPOUT, use_cache=False).cuda()
        self.model.train()
        self.adam = torch.optim.Adam(
            self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
        )

    def step(self, batch: Padded) -> None:
        self.adam.zero_grad(set_to_none=True)
        shifted = F.pad(batch.target[:, :-1], (1, 0))
        with torch.autocast("cuda", torch.bfloat16):
            logits = self.model(
                input_ids=batch.source,
                attention_mask=(batch.source != 0).long(),
                decoder_input_ids=shifted,
            ).logits
            loss = F.cross_entropy(
                logits.flatten(0, 1), batch.target.flatten(), ignore_index=0, label_smoothing=0.1
            )
        loss.backward()
        self.adam.step()

    def flops(self, batch: Padded) -> float:
        lengths = batch.source_lengths.numpy(), batch.target_lengths.numpy()
        return training_flops(self.config, *lengths)


def run_marian(config: ModelConfig, batches: list[Padded], rounds: int) -> tuple[list[float], ...]:
    """Tokens/s and FLOP/s of each round over all batches, after a warm-up round."""
    marian = Marian(config)
    tokens = sum(int(batch.target_lengths.sum()) for batch in batches)
    flops = sum(map(marian.flops, batches))

    def step_through() -> None:
        for batch in batches:
            marian.step(batch)

    times = seconds(step_through, rounds, wait=torch.cuda.synchronize)
    del marian
    gc.collect()
    torch.cuda.empty_cache()
    return [tokens / took for took in times], [flops / took for took in times]


# --- measurements ----------------------------------------------------------------------------


def measure(preset: str, corpus: Path, steps: int, n_batches: int) -> tuple[list[Row], list[Goal]]:
    runtime = Runtime.choose("cuda", "bf16")
    peak = runtime.matrix_peak()
    config = experiment(preset, corpus, steps, "auto")
    torch.cuda.reset_peak_memory_stats()
    ours = run_transept(config)
    memory = torch.cuda.max_memory_allocated() / 2**30
    batches = padded_batches(Corpus.open(corpus), n_batches)
    speeds, rates = run_marian(config.model, batches, 3)
    sustained = ours.of("tokens_per_second")[2:]
    mfu = ours.of("mfu")[2:]
    rows = [
        Row.once(preset, "matrix peak", peak / 1e12, "TFLOP/s"),
        Row.of(preset, "transept", sustained, "target tokens/s"),
        Row.of(preset, "transept", mfu, "MFU"),
        Row.once(preset, "transept", memory, "GiB peak"),
        Row.of(preset, "MarianMT bf16", speeds, "target tokens/s"),
        Row.of(preset, "MarianMT bf16", [rate / peak for rate in rates], "MFU"),
    ]
    times = statistics.median(sustained) / statistics.median(speeds)
    goals = [
        Goal.at_least(f"{preset}: MFU", statistics.median(mfu), MFU_GOALS[preset]),
        Goal.at_least(f"{preset}: times MarianMT", times, TIMES_MARIAN),
    ]
    if preset == "base":
        minutes = 100_000 * BUDGET / statistics.median(sustained) / 60
        goals.append(Goal.below("base: minutes for 100,000 steps", minutes, 45.0))
        goals.append(Goal.below("base: GiB peak", memory, 8.0))
    return rows, goals


def curves(corpus: Path, steps: int) -> tuple[list[Row], list[Goal]]:
    """The fused and the plain update on the same batches; another seed shows the noise."""
    runs = {
        "fast, seed 1": run_transept(experiment("base", corpus, steps, "auto")),
        "plain, seed 1": run_transept(experiment("base", corpus, steps, "plain")),
        "fast, seed 2": run_transept(experiment("base", corpus, steps, "auto", seed=2)),
    }
    nll = {name: run.of("nll") for name, run in runs.items()}
    each = zip(*nll.values(), strict=True)
    for step, values in zip(runs["fast, seed 1"].of("step"), each, strict=True):
        print(f"step {int(step):4} nll " + "  ".join(f"{value:.4f}" for value in values))
    rows = [Row.of("base, last 100 steps", name, of[-4:], "nll") for name, of in nll.items()]
    last = {name: statistics.mean(of[-4:]) for name, of in nll.items()}
    fast, plain, other = last.values()
    gap, noise = abs(fast - plain), abs(fast - other)
    allowed = max(0.05, noise)
    return rows, [Goal("fast − plain, nll (or another seed's)", gap, allowed, gap <= allowed)]


def main() -> None:
    parser = parser_of(__doc__, quick="fewer steps, only base")
    parser.add_argument("--corpus", type=Path, required=True, help="prepared, vocabulary 37,000")
    parser.add_argument("--curves", action="store_true", help="also compare with the plain update")
    options = parser.parse_args()
    rows, goals = [], []
    for preset in ["base"] if options.quick else ["base", "big"]:
        steps, n_batches = (150, 10) if options.quick else (550, 30)
        more_rows, more_goals = measure(preset, options.corpus, steps, n_batches)
        rows += more_rows
        goals += more_goals
        _report(rows, goals, options.json)
    if options.curves:
        more_rows, more_goals = curves(options.corpus, 500)
        _report(rows + more_rows, goals + more_goals, options.json)


def _report(rows: list[Row], goals: list[Goal], file: Path | None) -> None:
    name = torch.cuda.get_device_name()
    report("gpu_training", rows, goals, ["torch", "triton", "transformers"], file, name)


if __name__ == "__main__":
    main()
