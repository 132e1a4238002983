"""Decoding speed on a GPU: output tokens per second compared with HF's `generate`, same weights.

The first part uses random weights and outputs forced to 30 tokens. With `--corpus` and `--test`, a
second part trains a model for some minutes and translates a real test set, to the end of each
sentence. Both systems use half precision and run one after the other in one process. MarianMT gets
the test set sorted by length, its best batch size, and a warm-up pass over every shape.

    python benchmarks/gpu_decoding.py [--json FILE]
        [--corpus DIR --test SOURCE REFERENCE [--steps N] [--run DIR]]
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import sacrebleu
import torch
from marian import to_marian
from measuring import Goal, Row, parser_of, report
from measuring import seconds as measured_seconds
from torch import nn
from transformers import MarianMTModel
from workload import LENGTH, MODELS, NO_END, Ids, random_model, sources

import transept
from transept import ModelConfig, Transformer
from transept.assembly import train
from transept.data.config import CorpusConfig, DataConfig
from transept.data.shards import Corpus
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.fused.engine import DTYPE, FusedSearch
from transept.engines.native.network import IncrementalDecoder
from transept.experiment import Experiment
from transept.text.tokenizer import EOS_ID
from transept.training.config import CheckpointConfig, TrainingConfig

NAMES = {torch.bfloat16: "transept bf16", torch.float16: "transept fp16"}
OURS = NAMES[DTYPE]
HF = OURS.replace("transept", "HF MarianMT")
CELLS = [(1, 1), (1, 4), (64, 1), (64, 4)]
GOALS = {(1, 1): 15.0, (64, 4): 15.0}
TIMES_HF, SECONDS, SAME, BLEU_LOSS = 5.0, 1.0, 0.98, 0.1
GIBIBYTES = 2.0
SAME_UNIT = "same as reference"

seconds = partial(measured_seconds, wait=torch.cuda.synchronize)


# --- forced lengths --------------------------------------------------------------------------


def forced() -> tuple[list[Row], list[Goal]]:
    model = random_model(MODELS["base"]).cuda()
    ours = FusedSearch(model, DTYPE, NO_END)
    marian = to_marian(model).to(DTYPE)
    rows, goals = [], []
    for batch, beam in CELLS:
        config = SearchConfig(beam_size=beam)
        some = sources(batch, model.config.vocab_size)
        inputs, ids = [Input(source, LENGTH) for source in some], torch.tensor(some).cuda()

        def generate(ids: torch.Tensor = ids, beam: int = beam) -> torch.Tensor:
            with torch.inference_mode():
                outputs: torch.Tensor = marian.generate(
                    input_ids=ids, attention_mask=torch.ones_like(ids), num_beams=beam,
                    do_sample=False, max_new_tokens=LENGTH,
                )  # fmt: skip
                return outputs

        found = ours(inputs, config)
        assert all(len(best.ids) == LENGTH for best, *_ in found)
        assert generate().shape[1] == LENGTH + 1
        work = f"base, {'greedy' if beam == 1 else f'beam {beam}'}, batch {batch}"
        mine = seconds(lambda: ours(inputs, config), 9)  # noqa: B023
        theirs = seconds(generate, 3)
        n_tokens = batch * LENGTH
        rows += [
            Row.of(work, OURS, [n_tokens / one for one in mine], "output tokens/s"),
            Row.of(work, HF, [n_tokens / one for one in theirs], "output tokens/s"),
        ]
        if (batch, beam) in GOALS:
            times = statistics.median(theirs) / statistics.median(mine)
            goals.append(Goal.at_least(f"{work}: times HF", times, GOALS[batch, beam]))
    return [*rows, *scaling(ours, model.config.vocab_size)], goals


def scaling(ours: FusedSearch, vocab_size: int) -> list[Row]:
    """Time per token: constant in the number of sentences if the GPU is full, linear in length."""
    rows = []
    for n, length in ((256, 30), (1024, 30), (4096, 30), (256, 60), (256, 120)):
        inputs = [Input(source, length) for source in sources(n, vocab_size)]
        times = seconds(lambda: ours(inputs, SearchConfig()), 3)  # noqa: B023
        work = f"base, beam 4, {n} sentences of {length}"
        rows.append(Row.of(work, OURS, [one / n / length * 1e6 for one in times], "µs/token"))
    return rows


def memory() -> tuple[list[Row], list[Goal]]:
    """Beam 4 on 256 sentences of 50 tokens."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    model = random_model(MODELS["base"]).cuda()
    ours = FusedSearch(model, DTYPE, EOS_ID)
    some = sources(256, model.config.vocab_size, length=50)
    ours([Input(source, 100) for source in some], SearchConfig())
    peak = torch.cuda.max_memory_allocated() / 2**30
    work = "base, beam 4, 256 sentences of 50"
    goal = Goal.below(f"{work}: GiB peak, weights too", peak, GIBIBYTES)
    return [Row.once(work, OURS, peak, "GiB peak")], [goal]


# --- a real test set -------------------------------------------------------------------------


def trained(corpus: Path, steps: int, directory: Path) -> transept.Transducer:
    vocab_size = Corpus.open(corpus).manifest.side("target").vocab_size
    config = Experiment(
        model=ModelConfig.preset("base", vocab_size=vocab_size),
        data=DataConfig(train=(CorpusConfig(path=corpus),), workers=4),
        training=TrainingConfig(max_steps=steps, log_every=500),
        checkpoint=CheckpointConfig(every_minutes=60.0),
    )
    train(config, directory)
    return transept.load(directory, device="cuda")


def realistic(model: transept.Transducer, test: tuple[Path, Path]) -> tuple[list[Row], list[Goal]]:
    texts, references = (path.read_text(encoding="utf-8").splitlines() for path in test)
    ids = [[*one, EOS_ID] for one in model.source_tokenizer.encode_batch(texts)]
    config = SearchConfig()
    inputs = [Input(source, config.max_length(len(source))) for source in ids]

    def bleu(outputs: Sequence[Sequence[int]]) -> float:
        written = [model.target_tokenizer.decode(list(one)) for one in outputs]
        return sacrebleu.corpus_bleu(written, [references]).score

    searches = {
        name: FusedSearch(model.model, dtype, EOS_ID)
        for dtype, name in (NAMES | {torch.float32: "transept fp32"}).items()
    }
    found = {name: [best.ids for best, *_ in one(inputs, config)] for name, one in searches.items()}
    found["reference"] = plain(model.model, inputs, config)
    greedy = SearchConfig(beam_size=1)
    greedily = [best.ids for best, *_ in searches["transept fp32"](inputs, greedy)]
    same_greedily = _same(greedily, plain(model.model, inputs, greedy))
    mine = seconds(lambda: searches[OURS](inputs, config), 5)
    theirs, outputs = best_of_marian(model.model, ids, config)
    found[HF] = outputs
    work = f"{len(ids):,} sentences, beam 4"
    n_tokens = sum(len(one) + 1 for one in found[OURS])
    rows = [
        Row.of(work, OURS, mine, "s"),
        Row.of(work, HF, theirs, "s"),
        Row.of(work, OURS, [n_tokens / one for one in mine], "output tokens/s"),
        *(Row.once(work, name, bleu(one), "sacreBLEU") for name, one in found.items()),
        *(
            Row.once(work, name, _same(one, found["reference"]), SAME_UNIT)
            for name, one in found.items()
        ),
        Row.once(f"{len(ids):,} sentences, greedy", "transept fp32", same_greedily, SAME_UNIT),
    ]
    took, loss = statistics.median(mine), bleu(found["reference"]) - bleu(found[OURS])
    same = _same(found[OURS], found["reference"])
    return rows, [
        Goal.at_least(f"{work}: times HF", statistics.median(theirs) / took, TIMES_HF),
        Goal.below(f"{work}: seconds", took, SECONDS),
        Goal.at_least(f"{work}: identical outputs", same, SAME),
        Goal.below(f"{work}: BLEU lost", loss, BLEU_LOSS),
    ]


def _same(some: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> float:
    return sum(tuple(a) == tuple(b) for a, b in zip(some, others, strict=True)) / len(some)


@torch.inference_mode()
def plain(
    model: Transformer, inputs: Sequence[Input], config: SearchConfig
) -> list[tuple[int, ...]]:
    """The reference search on the GPU in single precision."""
    found: list[tuple[int, ...]] = [()] * len(inputs)
    for batch, source in batches([one.source for one in inputs], 256):
        step = IncrementalDecoder(model, model.encode(source))
        outputs = search(step, [inputs[i].max_length for i in batch], config, EOS_ID)
        for index, (best, *_) in zip(batch, outputs, strict=True):
            found[index] = best.ids
    return found


def batches(ids: Sequence[Sequence[int]], size: int) -> list[tuple[list[int], torch.Tensor]]:
    """Sentences of similar lengths, padded."""
    order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
    cut = [order[start : start + size] for start in range(0, len(order), size)]
    return [
        (batch, nn.utils.rnn.pad_sequence([torch.tensor(ids[i]) for i in batch], True).cuda())
        for batch in cut
    ]


def best_of_marian(
    model: Transformer, ids: Ids, config: SearchConfig
) -> tuple[list[float], list[tuple[int, ...]]]:
    """The fastest batch size of MarianMT, timed after every shape was run once."""
    marian = to_marian(model, eos_id=EOS_ID).to(DTYPE)
    sizes = {size: batches(ids, size) for size in (256, 512)}

    def decode(size: int) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = [()] * len(ids)
        for batch, source in sizes[size]:
            for index, output in zip(batch, generate(marian, source, config), strict=True):
                found[index] = output
        return found

    first = {size: seconds_once(lambda: decode(size)) for size in sizes}  # noqa: B023
    best = min(first, key=lambda size: first[size])
    print("MarianMT, first pass:", {size: f"{took:.1f} s" for size, took in first.items()})
    times = [seconds_once(lambda: decode(best)) for _ in range(2)]
    return times, decode(best)


def seconds_once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


@torch.inference_mode()
def generate(
    marian: MarianMTModel, source: torch.Tensor, config: SearchConfig
) -> list[tuple[int, ...]]:
    out = marian.generate(
        input_ids=source, attention_mask=(source != 0).long(), num_beams=config.beam_size,
        do_sample=False, length_penalty=config.length_penalty,
        max_new_tokens=config.max_length(source.shape[1]),
    )  # fmt: skip
    rows = out[:, 1:].tolist()
    return [tuple(row[: row.index(EOS_ID)] if EOS_ID in row else row) for row in rows]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--corpus", type=Path, help="a prepared corpus to train on")
    parser.add_argument("--test", type=Path, nargs=2, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--steps", type=int, default=5_000, help="training steps")
    parser.add_argument("--run", type=Path, help="directory for the training run")
    arguments = parser.parse_args()
    rows, goals = forced()
    more_rows, more_goals = memory()
    rows, goals = rows + more_rows, goals + more_goals
    if arguments.corpus:
        with tempfile.TemporaryDirectory() as directory:
            run = arguments.run or Path(directory) / "run"
            model = trained(arguments.corpus, arguments.steps, run)
            more_rows, more_goals = realistic(model, tuple(arguments.test))
        rows, goals = rows + more_rows, goals + more_goals
    packages = ["transept", "torch", "triton", "transformers"]
    report("gpu_decoding", rows, goals, packages, arguments.json, torch.cuda.get_device_name())


if __name__ == "__main__":
    main()
