"""Table 2 in miniature: what translations cost in time and in FLOPs, for three kinds of network.

    python benchmarks/table2.py --train DIR … --dev DIR --minutes 5 [--test SOURCE TARGET]
        [--family NAME …] [--json FILE]
    python benchmarks/table2.py --quick [--json FILE]

The directories are those of `transept data prepare`, with one vocabulary for both languages. A
recurrent network (recurrent.py), a convolutional one (convolutional.py) and the Transformer train
for the same time. Each has about as many parameters as the Transformer of `--preset`.

All use the same code for everything but the network: the loss with label smoothing, Adam, the
learning rate of each step, dropout's rate, the batches and their order, validation and beam search.
`transformer-fused` is the same Transformer in transept's training engine for a GPU. It has packed
batches with as many positions, which its kernels require; the other three have batches of pairs of
similar length. So `transformer` compares networks, each in plain PyTorch with bfloat16, except that
cuDNN's LSTMs multiply in TF32 by default (`--lstm`). `transformer-fused` compares implementations
too. The record has `--rate` and `--clip`, which can be chosen per family in separate commands.

Seconds are those of training, without validation. FLOPs are counted by formula: 6 per multiply-add
of the forward pass and real token. During training, BLEU is that of greedy search on a part of the
development set; at the end, it is that of beam search on the test set, or else on the whole
development set.

After each validation, the record is written. It keeps the rows of other families, so they can be
trained by separate commands.
"""

import argparse
import json
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from convolutional import Convolutional
from encoder_decoder import PAD, EncoderDecoder, NetworkStep
from measuring import Row, parser_of, write_record
from recurrent import Recurrent

from transept.assembly.corpora import Corpora, rehearse_largest, validation
from transept.assembly.quality import NOT_A_CHARACTER, DevelopmentSentences
from transept.assembly.training import build_update, fused_obstacles
from transept.data.batching.feed import Feed
from transept.data.config import BatchConfig, CorpusConfig, DataConfig
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import TOKENS_AT_ONCE, batches_by_length
from transept.experiment import Experiment
from transept.model.config import ModelConfig
from transept.model.transformer import Transformer
from transept.runtime.device import Runtime
from transept.runtime.seed import seed_torch
from transept.text.files import read_sentences
from transept.text.tokenizer import EOS_ID
from transept.training.batches import Loader, MicroBatch, to_micro_batches, training_flops
from transept.training.config import (
    AdamConfig,
    ScheduleConfig,
    TrainingConfig,
    ValidationConfig,
)
from transept.training.loss import Loss
from transept.training.quality import Quality
from transept.training.update import Schedule, Update, make_adam

FUSED = "transformer-fused"
SYSTEMS = {
    FUSED: "Transformer, transept's engine",
    "transformer": "Transformer",
    "recurrent": "recurrent",
    "convolutional": "convolutional",
}
"""The name of each family in the record."""
CLIP = {"recurrent": 1.0, "convolutional": 1.0}
"""Maximum norm of the gradient. The Transformer does without, as in the paper."""
MULTIPLE = 16
"""Widths are multiples of this, which suits tensor cores."""
BEAM = 4
LOG_SECONDS = 10.0
CHECK_EVERY = {"cpu": 1, "cuda": 25}
"""Steps between two looks at the clock, for which the host waits for the device."""


# --- networks --------------------------------------------------------------------------------


def network(family: str, config: ModelConfig, width: int, dtype: torch.dtype) -> EncoderDecoder:
    """A recurrent or convolutional network. Its depth follows that of the Transformer."""
    if family == "recurrent":
        n_layers = max(2, config.n_layers * 2 // 3)
        return Recurrent(
            config.vocab_size, width, n_layers=n_layers, dropout=config.dropout, dtype=dtype
        )
    return Convolutional(
        config.vocab_size,
        width,
        n_layers=max(2, config.n_layers * 4 // 3),
        dropout=config.dropout,
        max_positions=config.max_positions,
    )


def sized_network(
    family: str, config: ModelConfig, dtype: torch.dtype = torch.float32
) -> EncoderDecoder:
    """A network of the width that gives about as many parameters as the Transformer."""

    def size(width: int) -> int:
        with torch.device("meta"):
            return network(family, config, width, dtype).n_parameters()

    with torch.device("meta"):
        wanted = Transformer(config).n_parameters()
    # The first of these widths that is too large, or the one before it.
    widths = range(MULTIPLE, 4 * config.d_model, MULTIPLE)
    first = widths[bisect_left(widths, wanted, key=size)]
    before = max(MULTIPLE, first - MULTIPLE)
    closest = min((before, first), key=lambda width: abs(size(width) - wanted))
    return network(family, config, closest, dtype)


class Trained(NamedTuple):
    """A network in training, with the functions that depend on its family."""

    update: Update
    experiment: Experiment
    flops: Callable[[Any, Any], float]
    """FLOPs of a step by the lengths of source and target sentences."""
    measure: Callable[[DevelopmentSentences], Quality]
    """Translate sentences and score the translations."""


def built(family: str, experiment: Experiment, dtype: torch.dtype) -> Trained:
    """The network of a family with its optimizer and loss."""
    settings = experiment.training
    runtime = Runtime.choose(settings.device, settings.precision)
    config = experiment.model
    if family in ("transformer", FUSED):
        if family == FUSED and (reasons := fused_obstacles(experiment, runtime)):
            sys.exit(f"--family {FUSED}: the kernels cannot be used ({', '.join(reasons)})")
        update = build_update(experiment, runtime)
        return Trained(
            update,
            experiment,
            lambda sources, targets: training_flops(config, sources, targets),
            lambda sentences: sentences.measure(update),
        )
    seed_torch(settings.seed, "weights")
    model = sized_network(family, config, dtype).to(runtime.device)
    update = Update(
        model,
        adam=make_adam(model, experiment.adam),
        schedule=Schedule(
            config.d_model, experiment.schedule.warmup_steps, experiment.schedule.factor
        ),
        loss=Loss(experiment.loss.label_smoothing, PAD, experiment.loss.smoothing),
        runtime=runtime,
        seed=settings.seed,
        clip_norm=settings.clip_norm,
    )
    return Trained(
        update, experiment, model.training_flops, lambda sentences: measured(model, sentences)
    )


# --- translations ----------------------------------------------------------------------------


@torch.inference_mode()
def translated(model: EncoderDecoder, sources: Sequence[Sequence[int]], beam: int) -> list[Any]:
    """The ids of the best translation of each sentence."""
    model.eval()
    config = SearchConfig(beam_size=beam)
    device = model.projection.weight.device.type
    lengths = [beam * config.max_length(len(ids)) for ids in sources]
    found: list[Any] = [None] * len(sources)
    for batch in batches_by_length(lengths, TOKENS_AT_ONCE[device]):
        some = [sources[index] for index in batch]
        longest = [config.max_length(len(ids)) for ids in some]
        outputs = search(NetworkStep.of(model, some), longest, config, EOS_ID)
        for index, (best, *_) in zip(batch, outputs, strict=True):
            found[index] = best.ids
    return found


def measured(model: EncoderDecoder, sentences: DevelopmentSentences) -> Quality:
    """Translate sentences and score the translations, as `DevelopmentSentences.measure` does."""
    begin = time.monotonic()
    ids = translated(model, sentences.inputs, sentences.settings.bleu_beam_size)
    _, target = sentences.tokenizers
    outputs = [target.decode(each).replace(NOT_A_CHARACTER, "") for each in ids]
    seconds, samples = time.monotonic() - begin, sentences.settings.samples
    return Quality.of(outputs, sentences.sources, sentences.references, seconds, samples)


class Exams(NamedTuple):
    """The sentences that are translated during training and at the end."""

    during: DevelopmentSentences
    final: DevelopmentSentences

    @classmethod
    def of(cls, corpora: Corpora, options: argparse.Namespace) -> "Exams":
        few = ValidationConfig(bleu_every_steps=1, bleu_sentences=options.sentences, samples=1)
        all_of_them = replace(few, bleu_sentences=0, bleu_beam_size=BEAM)
        during = DevelopmentSentences.of(corpora.dev, few)
        final = DevelopmentSentences.of(corpora.dev, all_of_them)
        assert during is not None
        assert final is not None
        if options.test:
            sources, references = ([*read_sentences(path)] for path in options.test)
            source, target = final.tokenizers
            inputs = [source.framed(ids) for ids in source.encode_batch(sources)]
            final = DevelopmentSentences(
                inputs, sources, references, (source, target), final.settings
            )
        return cls(during, final)


# --- training --------------------------------------------------------------------------------


def experiment_of(family: str, options: argparse.Namespace, corpora: Corpora) -> Experiment:
    """The settings of a family. Only the layout of batches and clipping differ between them."""
    sizes = set(corpora.vocab_sizes.values())
    if len(sizes) > 1:
        sys.exit("--train: the corpora have a vocabulary per language; prepare them with one")
    model = ModelConfig.preset(options.preset, vocab_size=sizes.pop(), dropout=options.dropout)
    factor = options.rate / Schedule(model.d_model, options.warmup)(options.warmup)
    fused = family == FUSED
    return Experiment(
        model=model,
        data=data_of(options),
        batch=BatchConfig(
            source_tokens=options.tokens,
            target_tokens=options.tokens,
            layout="packed" if fused else "by_length",
            max_length=options.max_length,
        ),
        schedule=ScheduleConfig(warmup_steps=options.warmup, factor=factor),
        adam=AdamConfig(),
        training=TrainingConfig(
            seed=options.seed,
            clip_norm=CLIP.get(family) if options.clip is None else options.clip or None,
            device=options.device,
            # Compiling a network for each shape of a batch would take longer than training it.
            kernels="auto" if fused else "plain",
            compile="auto" if fused else "never",
        ),
    )


def data_of(options: argparse.Namespace) -> DataConfig:
    train = tuple(CorpusConfig(path=path) for path in options.train)
    return DataConfig(train=train, dev=options.dev, workers=options.workers)


class Work(NamedTuple):
    """The batch of one step."""

    micro_batches: list[MicroBatch]
    n_target_tokens: int
    flops: float


def batches(trained: Trained, corpora: Corpora) -> Generator[Work, None, None]:
    """The batches of training, endlessly."""
    experiment = trained.experiment
    seed, config = experiment.training.seed, experiment.batch
    feed = Feed(mixture=corpora.train, config=config, seed=seed)
    with Loader(feed, workers=experiment.data.workers) as loader:
        for header, block in loader:
            flops = sum(
                trained.flops(*(np.bincount(side[1].flatten().numpy())[1:] for side in sides))
                for _, *sides in header.cut(block)
            )
            work = to_micro_batches(header, block, trained.update.runtime)
            yield Work(work, header.n_target_tokens, flops)


@dataclass
class Progress:
    """Sums over the training so far."""

    step: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    target_tokens: int = 0


def train(
    trained: Trained,
    corpora: Corpora,
    options: argparse.Namespace,
    validated: Callable[[Progress], None],
) -> Progress:
    """Train for the given time or number of steps, with `options.points` validations."""
    update, done, data = trained.update, Progress(), batches(trained, corpora)
    rehearse_largest(update, trained.experiment)
    check_every = CHECK_EVERY[update.runtime.device.type]
    points, logged = 0, -LOG_SECONDS
    begin = time.perf_counter()
    while points < options.points:
        work = next(data)
        values = update(done.step + 1, work.micro_batches, work.n_target_tokens)
        done.step += 1
        done.flops += work.flops
        done.target_tokens += work.n_target_tokens
        if done.step % check_every and done.step != options.steps:
            continue
        update.runtime.synchronize()
        now = time.perf_counter()
        done.seconds, begin = done.seconds + now - begin, now
        if done.seconds - logged >= LOG_SECONDS:
            logged = done.seconds
            log(done, f"loss {float(values.smoothed):.3f}, norm {float(values.gradient_norm):.2f}")
        share = done.step / options.steps if options.steps else done.seconds / 60 / options.minutes
        if share * options.points >= points + 1 or share >= 1:
            points = options.points if share >= 1 else int(share * options.points)
            validated(done)
            begin = time.perf_counter()
    data.close()
    return done


def log(done: Progress, text: str) -> None:
    speed = done.target_tokens / done.seconds
    print(
        f"  step {done.step:,}, {done.seconds:.0f} s, {done.flops:.3g} FLOPs, "
        f"{speed:,.0f} target tokens/s: {text}",
        flush=True,
    )


def run(family: str, options: argparse.Namespace, corpora: Corpora, exams: Exams) -> None:
    """Train and evaluate one family, and write its rows."""
    experiment = experiment_of(family, options, corpora)
    trained = built(family, experiment, getattr(torch, options.lstm))
    validate = validation(trained.experiment, corpora, trained.update)
    assert validate is not None
    system, parameters = SYSTEMS[family], trained.update.model.n_parameters()
    print(f"{system}: {parameters:,} parameters", flush=True)
    rows = [
        Row.once("network", system, parameters / 1e6, "M parameters"),
        Row.once("settings", system, options.rate, "peak learning rate"),
        Row.once("settings", system, experiment.training.clip_norm or 0.0, "maximum norm"),
    ]

    def validated(done: Progress) -> None:
        perplexity = validate().perplexity
        quality = trained.measure(exams.during)
        log(done, f"perplexity {perplexity:.2f}, BLEU {quality.bleu:.2f} (greedy)")
        print(f"    {quality.samples[0]['output']}", flush=True)
        point = f"step {done.step:,}"
        rows.extend(costs(point, system, done))
        rows.append(Row.once(point, system, perplexity, "perplexity"))
        rows.append(Row.once(point, system, quality.bleu, "BLEU"))
        record(rows, options)

    done = train(trained, corpora, options, validated)
    bleu = trained.measure(exams.final).bleu
    print(f"{system}: BLEU {bleu:.2f} with beam {BEAM}", flush=True)
    rows += costs("end", system, done)
    rows.append(Row.once("end", system, done.target_tokens / done.seconds, "target tokens/s"))
    rows.append(replace(rows_of(rows, "perplexity")[-1], work="end"))
    rows.append(Row.once("end", system, bleu, "BLEU"))
    record(rows, options)


def costs(work: str, system: str, done: Progress) -> list[Row]:
    return [
        Row.once(work, system, done.seconds, "s"),
        Row.once(work, system, done.flops, "FLOPs"),
        Row.once(work, system, done.step, "steps"),
    ]


def rows_of(rows: Sequence[Row], unit: str) -> list[Row]:
    return [row for row in rows if row.unit == unit]


def record(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Replace the rows of one system in the record."""
    if options.json is None:
        return
    known: list[Row] = []
    if options.json.exists():
        before = json.loads(options.json.read_text(encoding="utf-8"))["rows"]
        known = [Row(**row) for row in before if row["system"] != rows[0].system]
    order = [*SYSTEMS.values()]
    every = sorted([*known, *rows], key=lambda row: order.index(row.system))
    on_gpu = Runtime.choose(options.device).device.type == "cuda"
    part = options.json.with_name(f".{options.json.name}.part")
    device = torch.cuda.get_device_name() if on_gpu else None
    write_record(f"table2_{'cuda' if on_gpu else 'cpu'}", every, [], ["torch"], part, device)
    part.replace(options.json)


# --- options ---------------------------------------------------------------------------------


def quick(options: argparse.Namespace, directory: Path) -> None:
    """Prepare the bundled sentences, and choose sizes for a CPU."""
    from transept.apps.recipes.sentences import built_in
    from transept.data.preparation.formats import LinePair
    from transept.data.preparation.prepare import Preparation, prepare
    from transept.text.training import train_tokenizer

    splits = {"train": built_in()["train"][:20_000], "dev": built_in()["dev"][:100]}
    lines = [line for pair in splits["train"] for line in pair]
    train_tokenizer(lines, vocab_size=1000).save(directory / "tokenizer")
    for name, pairs in splits.items():
        files = [directory / f"{name}.{language}" for language in ("en", "de")]
        for file, sentences in zip(files, zip(*pairs, strict=True), strict=True):
            file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        job = Preparation(
            inputs=(LinePair(*files),),
            tokenizer=directory / "tokenizer",
            output=directory / name,
        )
        prepare(job, workers=0)
    options.train, options.dev = [directory / "train"], directory / "dev"
    options.preset, options.tokens, options.max_length = "tiny", 500, 60
    options.workers, options.dropout, options.warmup, options.rate = 0, 0.0, 100, 3e-3


def parser() -> argparse.ArgumentParser:
    made = parser_of(__doc__ or "", quick="tiny networks on the bundled sentences")
    made.add_argument("--train", type=Path, nargs="+", metavar="DIR", help="prepared corpora")
    made.add_argument("--dev", type=Path, metavar="DIR", help="the prepared development set")
    made.add_argument("--test", type=Path, nargs=2, metavar="FILE", help="source and target text")
    made.add_argument("--family", nargs="+", choices=SYSTEMS, help="default: all for the device")
    made.add_argument("--minutes", type=float, default=5.0, help="of training per family")
    made.add_argument("--steps", type=int, help="train for N steps instead")
    made.add_argument("--points", type=int, default=10, help="validations per family")
    made.add_argument("--sentences", type=int, default=500, help="to translate per validation")
    made.add_argument("--preset", default="base", help="the Transformer; the others are as large")
    made.add_argument("--tokens", type=int, default=25_000, help="positions per batch and side")
    made.add_argument("--max-length", type=int, default=250, help="longer pairs are skipped")
    made.add_argument("--dropout", type=float, default=0.1)
    made.add_argument("--warmup", type=int, default=2000, help="steps until the peak rate")
    made.add_argument("--rate", type=float, default=7e-4, help="peak of the learning rate")
    made.add_argument("--clip", type=float, help="maximum norm of the gradient; 0: none")
    made.add_argument("--lstm", choices=["float32", "bfloat16"], default="float32",
                      help="type of LSTMs; bfloat16 requires cuDNN 9.13")  # fmt: skip
    made.add_argument("--workers", type=int, default=4, help="processes that read batches")
    made.add_argument("--device", default="auto")
    made.add_argument("--seed", type=int, default=1)
    return made


def main() -> None:
    options = parser().parse_args()
    on_gpu = Runtime.choose(options.device).device.type == "cuda"
    families = options.family or [name for name in SYSTEMS if on_gpu or name != FUSED]
    if FUSED in families and not on_gpu:
        sys.exit(f"--family {FUSED}: requires a GPU")
    with tempfile.TemporaryDirectory() as directory:
        if options.quick:
            quick(options, Path(directory))
        if not options.train or not options.dev:
            sys.exit("--train and --dev: name prepared corpora, or use --quick")
        first = Experiment(model=ModelConfig(vocab_size=0), data=data_of(options))
        corpora = Corpora.open(first)
        exams = Exams.of(corpora, options)
        for family in families:
            run(family, options, corpora, exams)


if __name__ == "__main__":
    main()
