"""Workloads of the benchmarks: networks, batches of similar lengths, sources of one length."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transept import ModelConfig, Transformer
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.runtime.products import convenient
from transept.text.tokenizer import EOS_ID
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

MODELS = {
    "small": ModelConfig(vocab_size=8_000, n_layers=3, d_model=256, d_ff=1024, n_heads=4),
    "base": ModelConfig.preset("base"),
}


# --- training --------------------------------------------------------------------------------

SMOOTHING = 0.1


@dataclass(frozen=True)
class Pairs:
    """A length-bucketed batch, padded and as a micro-batch."""

    sources: Tensor
    targets: Tensor
    batch: MicroBatch
    n_target_tokens: int


def bucketed(vocab_size: int, n_batches: int, budget: int) -> list[Pairs]:
    """Batches of at most `budget` positions per side, with realistic lengths, sorted and split."""
    chance = random.Random(0)
    lengths = []
    for _ in range(n_batches * budget // 20):
        source = min(120, max(2, round(chance.lognormvariate(3.1, 0.6))))
        lengths.append((source, min(120, max(2, round(source * chance.gauss(1.05, 0.15))))))
    lengths.sort(key=max)
    batches: list[list[tuple[int, int]]] = []
    rows: list[tuple[int, int]] = []
    for pair in lengths:
        if rows and (len(rows) + 1) * max(*pair, *map(max, rows)) > budget:
            batches.append(rows)
            rows = []
        rows.append(pair)
    chance.shuffle(batches)
    return [_pairs(vocab_size, rows) for rows in batches[:n_batches]]


def _pairs(vocab_size: int, lengths: list[tuple[int, int]]) -> Pairs:
    def padded(side: Sequence[int]) -> Tensor:
        ids = torch.randint(4, vocab_size, (len(side), max(side)))
        ids[torch.arange(max(side)) >= torch.tensor(side)[:, None]] = 0
        return ids

    sources, targets = map(padded, zip(*lengths, strict=True))
    source, target = (
        Tokens.padded(ids, 0).without_padding(convenient) for ids in (sources, targets)
    )
    micro_batch = MicroBatch(source, target)
    return Pairs(sources, targets, micro_batch, int((targets != 0).sum()))


def fresh_update(config: ModelConfig, runtime: Runtime) -> Update:
    """A step of training from initial weights, with the paper's settings."""
    model = Transformer(config)
    return Update(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=Schedule(config.d_model),
        loss=Loss(SMOOTHING, config.pad_id),
        runtime=runtime,
        seed=1,
    )


# --- decoding --------------------------------------------------------------------------------

LENGTH, NO_END = 30, -1
"""Length of sources and outputs, and an end symbol that no token has."""

Ids = list[list[int]]


def random_model(config: ModelConfig) -> Transformer:
    """Random weights. A random gain of the last layer normalization avoids repetitive outputs."""
    torch.manual_seed(0)
    model = Transformer(config).eval()
    *_, last = (module for module in model.decoder.modules() if isinstance(module, nn.LayerNorm))
    nn.init.normal_(last.weight)
    return model


def sources(n: int, vocab_size: int, length: int = LENGTH) -> Ids:
    ids = torch.randint(4, vocab_size, (n, length))
    ids[:, -1] = EOS_ID
    return ids.tolist()
