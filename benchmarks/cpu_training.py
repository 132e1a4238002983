"""Training speed on a CPU: target tokens per CPU-second, one thread, compared with baselines.

All systems train the same network on the same length-bucketed batches in one process, interleaved
step by step. The PyTorch baselines get padded rows, full logits and torch's Adam, as is usual.
transept gets the same sentences without padding. Further rows show the baselines with their own
dropout, with the fused Adam that transept uses, with eager attention, and with torch.compile.

The toolkit Eole is measured too, if `pip install --no-deps eole pyonmttok` was run. It trains with
its own trainer, which has no fused Adam and, on a CPU, only eager attention.

    python benchmarks/cpu_training.py [--compile] [--quick] [--json FILE]
"""

import time
from collections.abc import Callable

import torch
from marian import PAPER_DROPOUT, can_compile, sized_marian
from measuring import Goal, Row, parser_of, report
from torch import Tensor, nn
from torch.nn import functional as F
from workload import MODELS, SMOOTHING, Pairs, bucketed, fresh_update

from transept import ModelConfig
from transept.runtime.device import Runtime

GOALS = {"small": 1.25, "base": 1.15}

BASELINES = ("torch.nn.Transformer", "HF MarianMT", "Eole")
HF_COMPILED, EOLE_COMPILED = "HF MarianMT, torch.compile", "Eole, torch.compile"

Step = Callable[[Pairs], object]


def transept_step(config: ModelConfig) -> Step:
    update = fresh_update(config, Runtime.choose("cpu"))
    counter = iter(range(1, 1_000_000))
    return lambda pairs: update(next(counter), [pairs.batch], pairs.n_target_tokens)


def baseline_step(model: nn.Module, logits: Callable[[Pairs], Tensor], fused: bool) -> Step:
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

    positions: Tensor

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
        dropped: Tensor = self.dropout(embedded)
        return dropped

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
    return baseline_step(model, lambda pairs: model(pairs.sources, pairs.targets), fused)


def marian_step(
    config: ModelConfig,
    paper_dropout: bool = True,
    fused: bool = False,
    attention: str = "sdpa",
    compiled: bool = False,
) -> Step:
    dropout = PAPER_DROPOUT if paper_dropout else {}
    model = sized_marian(config, attn_implementation=attention, **dropout)
    if compiled:
        model.forward = torch.compile(model.forward, dynamic=True)

    def logits(pairs: Pairs) -> Tensor:
        shifted = F.pad(pairs.targets[:, :-1], (1, 0), value=0)
        output = model(
            input_ids=pairs.sources,
            attention_mask=pairs.sources != 0,
            decoder_input_ids=shifted,
            use_cache=False,
        )
        found: Tensor = output.logits
        return found

    return baseline_step(model, logits, fused)


def eole_steps(config: ModelConfig, compiled: bool) -> dict[str, Step]:
    """Eole, if it is installed."""
    try:
        from eole_training import EoleTrainer
    except ImportError as error:
        print(f"Eole is omitted: {error}")
        return {}

    def step(paper_dropout: bool = True, compiled: bool = False) -> Step:
        trainer = EoleTrainer(config, paper_dropout, compiled)
        return lambda pairs: trainer.step(pairs.sources, pairs.targets)

    return {
        "Eole": step(),
        "Eole, its dropout": step(paper_dropout=False),
        **({EOLE_COMPILED: step(compiled=True)} if compiled else {}),
    }


def systems(config: ModelConfig, compiled: bool) -> dict[str, Step]:
    return {
        "transept": transept_step(config),
        "torch.nn.Transformer": torch_step(config),
        "torch.nn.Transformer, its dropout": torch_step(config, paper_dropout=False),
        "torch.nn.Transformer, fused Adam": torch_step(config, fused=True),
        "HF MarianMT": marian_step(config),
        "HF MarianMT, its dropout": marian_step(config, paper_dropout=False),
        "HF MarianMT, fused Adam": marian_step(config, fused=True),
        "HF MarianMT, eager attention": marian_step(config, attention="eager"),
        **({HF_COMPILED: marian_step(config, compiled=True)} if compiled else {}),
        **eole_steps(config, compiled),
    }


def measure(name: str, budget: int, n_batches: int, compiled: bool) -> tuple[list[Row], Goal]:
    config = MODELS[name]
    rates: dict[str, list[float]] = {}
    contenders = systems(config, compiled)
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
    ratios = [
        Row.of(
            f"train {name}",
            f"transept / {system}",
            [ours / theirs for ours, theirs in zip(rates["transept"], rates[system], strict=True)],
            "×",
        )
        for system in BASELINES
        if system in rates
    ]
    least = min(row.value for row in ratios)
    goal = Goal.at_least(f"{name}: times the best baseline", least, GOALS[name])
    return [*rows, *ratios], goal


def main() -> None:
    parser = parser_of(__doc__, quick="small only, under a minute")
    parser.add_argument("--compile", action="store_true", help="add torch.compile: minutes more")
    arguments = parser.parse_args()
    compiled = arguments.compile and can_compile()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    work = {"small": (1500, 3)} if arguments.quick else {"small": (2500, 12), "base": (1000, 8)}
    rows, goals = [], []
    for name, (budget, n_batches) in work.items():
        measured, goal = measure(name, budget, n_batches, compiled)
        rows += measured
        goals.append(goal)
    packages = ["transept", "torch", "transformers"]
    packages += ["eole"] * any(row.system == "Eole" for row in rows)
    report("cpu_training", rows, goals, packages, arguments.json)


if __name__ == "__main__":
    main()
