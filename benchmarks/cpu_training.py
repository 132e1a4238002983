"""Training speed on a CPU: target tokens per CPU-second, one thread, against PyTorch peers.

All systems train the same network on the same length-bucketed batches in one process, interleaved
step by step. Peers get padded rows, full logits and torch's Adam, as their users write it;
transept gets the same sentences without the padding. Further rows show the peers with their own
dropout, and with the fused Adam that transept uses.

    python benchmarks/cpu_training.py [--quick] [--json FILE]
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from marian import PAPER_DROPOUT, sized_marian
from measuring import Goal, Row, report
from torch import Tensor, nn
from torch.nn import functional as F

from transept import ModelConfig, Transformer
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.schedule import Schedule
from transept.training.update import Update, make_adam

MODELS = {
    "small": ModelConfig(vocab_size=8_000, n_layers=3, d_model=256, d_ff=1024, n_heads=4),
    "base": ModelConfig.preset("base"),
}
GOALS = {"small": 1.25, "base": 1.15}
SMOOTHING = 0.1


@dataclass(frozen=True)
class Pairs:
    """A length-bucketed batch, in both forms."""

    sources: Tensor
    targets: Tensor
    batch: MicroBatch
    n_target_tokens: int


def bucketed(vocab_size: int, n_batches: int, budget: int) -> list[Pairs]:
    """Batches of at most `budget` places a side: lengths as in real text, sorted, then cut."""
    chance = random.Random(0)
    lengths = []
    for _ in range(n_batches * budget // 20):
        source = min(120, max(2, round(chance.lognormvariate(3.1, 0.6))))
        lengths.append((source, min(120, max(2, round(source * chance.gauss(1.05, 0.15))))))
    lengths.sort(key=max)
    batches, rows = [], []
    for pair in lengths:
        if rows and (len(rows) + 1) * max(*pair, *map(max, rows)) > budget:
            batches.append(rows)
            rows = []
        rows.append(pair)
    chance.shuffle(batches)
    return [_pairs(vocab_size, rows) for rows in batches[:n_batches]]


def _pairs(vocab_size: int, lengths: list[tuple[int, int]]) -> Pairs:
    sides = []
    for side in zip(*lengths, strict=True):
        ids = torch.randint(4, vocab_size, (len(side), max(side)))
        ids[torch.arange(max(side)) >= torch.tensor(side)[:, None]] = 0
        sides.append(ids)
    source, target = (Tokens.padded(ids, 0).without_padding() for ids in sides)
    return Pairs(*sides, MicroBatch(source, target), int((sides[1] != 0).sum()))


Step = Callable[[Pairs], None]


def transept_step(config: ModelConfig) -> Step:
    model = Transformer(config)
    update = Update(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=Schedule(config.d_model),
        loss=Loss(SMOOTHING, config.pad_id),
        runtime=Runtime.choose("cpu"),
        seed=1,
    )
    counter = iter(range(1, 1_000_000))
    return lambda pairs: update(next(counter), [pairs.batch], pairs.n_target_tokens) and None


def peer_step(model: nn.Module, logits: Callable[[Pairs], Tensor], fused: bool) -> Step:
    adam = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9, fused=fused)

    def step(pairs: Pairs) -> None:
        model.train()
        adam.zero_grad(set_to_none=True)
        out, ids = logits(pairs).flatten(0, 1), pairs.targets.flatten()
        loss = F.cross_entropy(out, ids, ignore_index=0, label_smoothing=SMOOTHING)
        loss.backward()
        adam.step()

    return step


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` with the paper's embeddings around it."""

    def __init__(self, config: ModelConfig, paper_dropout: bool) -> None:
        super().__init__()
        self.core = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_layers,
            config.n_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.embedding = nn.Embedding(config.vocab_size, config.d_model, padding_idx=0)
        self.dropout = nn.Dropout(config.dropout)
        self.scale = config.d_model**0.5
        self.register_buffer("positions", torch.randn(1, 512, config.d_model))
        if paper_dropout:
            for module in self.core.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
                elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                    module.dropout.p = 0.0

    def embed(self, ids: Tensor) -> Tensor:
        embedded = self.embedding(ids) * self.scale + self.positions[:, : ids.shape[1]]
        return self.dropout(embedded)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        shifted = F.pad(target[:, :-1], (1, 0), value=3)
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1]) < 0
        states = self.core(
            self.embed(source),
            self.embed(shifted),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=source == 0,
            memory_key_padding_mask=source == 0,
        )
        return F.linear(states, self.embedding.weight)


def torch_step(config: ModelConfig, paper_dropout: bool = True, fused: bool = False) -> Step:
    model = TorchTransformer(config, paper_dropout)
    return peer_step(model, lambda pairs: model(pairs.sources, pairs.targets), fused)


def marian_step(config: ModelConfig, paper_dropout: bool = True, fused: bool = False) -> Step:
    model = sized_marian(config, **(PAPER_DROPOUT if paper_dropout else {}))

    def logits(pairs: Pairs) -> Tensor:
        shifted = F.pad(pairs.targets[:, :-1], (1, 0), value=0)
        return model(
            input_ids=pairs.sources,
            attention_mask=pairs.sources != 0,
            decoder_input_ids=shifted,
            use_cache=False,
        ).logits

    return peer_step(model, logits, fused)


def systems(config: ModelConfig) -> dict[str, Step]:
    return {
        "transept": transept_step(config),
        "torch.nn.Transformer": torch_step(config),
        "torch.nn.Transformer, its dropout": torch_step(config, paper_dropout=False),
        "torch.nn.Transformer, fused Adam": torch_step(config, fused=True),
        "HF MarianMT": marian_step(config),
        "HF MarianMT, its dropout": marian_step(config, paper_dropout=False),
        "HF MarianMT, fused Adam": marian_step(config, fused=True),
    }


def measure(name: str, budget: int, n_batches: int) -> tuple[list[Row], Goal]:
    config = MODELS[name]
    rates: dict[str, list[float]] = {}
    contenders = systems(config)
    for number, pairs in enumerate(bucketed(config.vocab_size, n_batches + 1, budget)):
        for system, step in contenders.items():
            start = time.process_time()
            step(pairs)
            if number > 0:  # the first batch warms up
                rate = pairs.n_target_tokens / (time.process_time() - start)
                rates.setdefault(system, []).append(rate)
    rows = [
        Row.of(f"train {name}", system, values, "target tokens/CPU-s")
        for system, values in rates.items()
    ]
    peers = [row for row in rows if row.system in ("torch.nn.Transformer", "HF MarianMT")]
    best = max(peers, key=lambda row: row.value)
    ratios = [a / b for a, b in zip(rates["transept"], rates[best.system], strict=True)]
    ratio = Row.of(f"train {name}", f"transept / {best.system}", ratios, "×")
    goal = Goal.at_least(f"{name}: times the better peer", ratio.value, GOALS[name])
    return [*rows, ratio], goal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small only, under a minute")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    work = {"small": (1500, 3)} if arguments.quick else {"small": (2500, 8), "base": (1000, 3)}
    rows, goals = [], []
    for name, (budget, n_batches) in work.items():
        measured, goal = measure(name, budget, n_batches)
        rows += measured
        goals.append(goal)
    report("cpu_training", rows, goals, ["transept", "torch", "transformers"], arguments.json)


if __name__ == "__main__":
    main()
