"""Decoding a real test set on a CPU: time and BLEU of a trained model, by engine.

Without `--model`, the demo trains an English-German model in some minutes. All engines get the same
weights and run interleaved. With one thread, they get the same batches of up to 32 sentences of
similar length. With two threads, they get all sentences at once and form their own batches. Times
include the encoder, but not tokenization.

The Marian toolkit is measured too, with one thread, if `pip install pymarian` was run. The package
has wheels for x86_64 only.

    python benchmarks/cpu_test_set.py [--quick] [--json FILE]
    python benchmarks/cpu_test_set.py --model DIR --corpus DIR --test SRC REF [--json FILE]
"""

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import marian_npz
import torch
from cpu_decoding import CT2, INT8, OURS, Decode, exported, one_thread
from measuring import Goal, Row, parser_of, report
from workload import Ids

import transept
from transept import Transformer
from transept.data.shards import Corpus
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.native.calibration import IntegerPlan, calibrated
from transept.engines.native.engine import NativeEngine, torch_threads
from transept.engines.native.network import IncrementalDecoder, encode
from transept.engines.shortlist import Shortlist, learn
from transept.errors import ConfigError
from transept.evaluation.conventions import sacre_bleu
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID, PAD_ID

BATCH = 32
CT2_BATCH = 64
"""For CTranslate2, larger batches are less than 2 % faster."""
BEAMS = {1: "greedy", 4: "beam 4"}
SHORT, OURS_INT8 = "transept, shortlist", "transept, native-int8"
MARIAN, MARIAN_INT8 = "Marian float32", "Marian int8"
MARIAN_OPTIONS = f"""--cpu-threads 1 --mini-batch {BATCH} --maxi-batch 100 --maxi-batch-sort src
--workspace 256 --max-length 1024 --allow-unk --quiet-translation --log-level off"""
"""Batches of 16, 64 or 128 sentences were not faster, and neither was another workspace."""
MARIAN_SEARCH = {
    1: "--beam-size 1 --skip-cost",
    4: f"--beam-size 4 --normalize {SearchConfig().length_penalty}",
}
"""By beam size. In greedy search Marian omits log P, as CTranslate2 does. Its length penalty is
|Y|^α, with our α."""


def transept_decoder(
    model: Transformer, shortlist: Shortlist | None = None, plan: IntegerPlan | None = None
) -> Decode:
    def decode(sources: Ids, beam: int) -> Ids:
        width = max(map(len, sources))
        ids = torch.tensor([[*source, *[PAD_ID] * (width - len(source))] for source in sources])
        config = SearchConfig(beam_size=beam)
        with torch.inference_mode():
            tokens = None if shortlist is None else shortlist.tokens(ids)
            step = IncrementalDecoder(model, encode(model, ids, plan), tokens, plan)
            lengths = [config.max_length(len(source)) for source in sources]
            found = search(step, lengths, config, EOS_ID)
        return [list(best.ids) for best, *_ in found]

    return decode


def parallel_decoder(model: Transformer) -> Decode:
    """The native engine on two threads, which forms its own batches."""
    engine = NativeEngine([model])

    def decode(sources: Ids, beam: int) -> Ids:
        config = SearchConfig(beam_size=beam)
        inputs = [Input(source, config.max_length(len(source))) for source in sources]
        with torch_threads(2):
            found = engine.search(inputs, config, no_progress)
        return [list(best.ids) for best, *_ in found]

    return decode


def ctranslate2_decoder(model: Transformer, compute_type: str, threads: int = 1) -> Decode:
    translator = exported(model, compute_type, threads)

    def decode(sources: Ids, beam: int) -> Ids:
        named = [list(map(str, source)) for source in sources]
        # CTranslate2 has one limit per batch, transept one per sentence.
        limits = [SearchConfig().max_length(len(source)) for source in sources]
        results = translator.translate_batch(
            named, beam_size=beam, max_decoding_length=max(limits), max_batch_size=CT2_BATCH
        )
        found = [list(map(int, result.hypotheses[0])) for result in results]
        return [ids[:limit] for ids, limit in zip(found, limits, strict=True)]

    return decode


def marian_decoder(model: Transformer, gemm_type: str | None = None) -> Decode:
    """The Marian toolkit. An error in Marian ends the process."""
    from pymarian import Translator

    names = marian_npz.names(model.config.vocab_size)
    ids_of = {name: token for token, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as directory:
        marian_npz.write_model(model, Path(directory))
        weights = Path(directory) / marian_npz.MODEL
        if gemm_type is not None:
            weights = marian_npz.quantized(weights, gemm_type)
        vocabulary = Path(directory) / marian_npz.VOCABULARY
        files = f"--models {weights} --vocabs {vocabulary} {vocabulary}"
        translators = {
            beam: Translator(" ".join(f"{files} {MARIAN_OPTIONS} {search}".split()))
            for beam, search in MARIAN_SEARCH.items()
        }

    def decode(sources: Ids, beam: int) -> Ids:
        # Marian appends the end symbol. Its limit is a multiple of the longest source of a batch.
        lines = [" ".join(names[token] for token in source[:-1]) for source in sources]
        limits = [SearchConfig().max_length(len(source)) for source in sources]
        factor = max(limits) / max(map(len, sources))
        outputs = translators[beam].translate(lines, max_length_factor=factor)
        found = [[ids_of[name] for name in output.split()] for output in outputs]
        return [ids[:limit] for ids, limit in zip(found, limits, strict=True)]

    return decode


def marian_decoders(model: Transformer) -> dict[str, Decode]:
    """The Marian toolkit in two precisions, if it is installed and has this network."""
    if find_spec("pymarian") is None:
        print("Marian is omitted, because pymarian is not installed")
        return {}
    try:
        return {MARIAN: marian_decoder(model), MARIAN_INT8: marian_decoder(model, "intgemm8")}
    except ConfigError as error:
        print(f"Marian is omitted: {error}")
        return {}


def trained(directory: Path, steps: int) -> tuple[Path, Path, tuple[Path, Path]]:
    """The demo's model, corpus and test set."""
    command = [sys.executable, "-m", "transept", "demo", "--output", str(directory)]
    subprocess.run([*command, "--steps", str(steps)], check=True, stdout=subprocess.DEVNULL)
    text = directory / "text"
    return directory / "run", directory / "data" / "train", (text / "test.en", text / "test.de")


def measure(
    work: str, beam: int, decoders: dict[str, Decode], batches: list[Ids], rounds: int
) -> tuple[list[Row], dict[str, Ids]]:
    """CPU-seconds and seconds for the whole test set, and the outputs."""
    cpu: dict[str, list[float]] = {system: [] for system in decoders}
    wall: dict[str, list[float]] = {system: [] for system in decoders}
    outputs: dict[str, Ids] = {}
    for _ in range(rounds):
        for system, decode in decoders.items():
            start = time.process_time(), time.perf_counter()
            outputs[system] = [ids for batch in batches for ids in decode(batch, beam)]
            cpu[system].append(time.process_time() - start[0])
            wall[system].append(time.perf_counter() - start[1])
    rows = [Row.of(work, system, values, "CPU-s") for system, values in cpu.items()]
    rows += [Row.of(work, system, values, "s") for system, values in wall.items()]
    return rows, outputs


def main() -> None:
    parser = parser_of(__doc__, quick="train for 200 steps, two rounds")
    parser.add_argument("--steps", type=int, default=2320, help="train the demo for N steps")
    parser.add_argument("--model", type=Path, help="a model directory; default: train the demo")
    parser.add_argument("--corpus", type=Path, help="a prepared corpus for the shortlist")
    parser.add_argument("--test", type=Path, nargs=2, metavar=("SRC", "REF"))
    arguments = parser.parse_args()
    one_thread()
    with tempfile.TemporaryDirectory() as directory:
        paths = arguments.model, arguments.corpus, arguments.test
        if arguments.model is None:
            steps = 200 if arguments.quick else arguments.steps
            paths = trained(Path(directory) / "demo", steps)
        rows, goals = compare(*paths, rounds=2 if arguments.quick else 5)
    packages = ["transept", "torch", "ctranslate2", "pymarian"]
    report("cpu_test_set", rows, goals, packages, arguments.json)


def compare(
    directory: Path, corpus_directory: Path, test: tuple[Path, Path], rounds: int
) -> tuple[list[Row], list[Goal]]:
    transducer = transept.load(directory, device="cpu")
    model = transducer.model
    corpus = Corpus.open(corpus_directory)
    pairs = ((corpus.source(index), corpus.target(index)) for index in range(len(corpus)))
    n_source = len(model.source_embedding.weight)
    decoders = {
        OURS: transept_decoder(model),
        OURS_INT8: transept_decoder(model, plan=calibrated(model)),
        SHORT: transept_decoder(model, learn(pairs, n_source, keep=[EOS_ID])),
        CT2: ctranslate2_decoder(model, "float32"),
        INT8: ctranslate2_decoder(model, "int8"),
        **marian_decoders(model),
    }
    source, reference = (path.read_text(encoding="utf-8").splitlines() for path in test)
    ids = [[*transducer.source_tokenizer.encode(line), EOS_ID] for line in source]
    order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
    batches = [
        [ids[index] for index in order[first : first + BATCH]]
        for first in range(0, len(order), BATCH)
    ]
    rows: list[Row] = []
    goals: list[Goal] = []
    for beam, work in BEAMS.items():
        new, outputs = measure(work, beam, decoders, batches, rounds)
        rows += new
        for system, found in outputs.items():
            text = [transducer.target_tokenizer.decode(one) for one in found]
            score = sacre_bleu().measure(text, [reference[index] for index in order]).value
            same = 100 * sum(map(list.__eq__, found, outputs[OURS])) / len(found)
            rows.append(Row.once(work, system, score, "BLEU"))
            rows.append(Row.once(work, system, same, "% same outputs"))
        goals.append(goal(new, "CPU-s"))
        goals.append(goal(new, "CPU-s", OURS_INT8, INT8, 0.9))
        goals.append(goal(new, "CPU-s", OURS_INT8, OURS))
    parallel = {OURS: parallel_decoder(model), CT2: ctranslate2_decoder(model, "float32", 2)}
    everything = [[ids[index] for index in order]]
    for beam, work in BEAMS.items():
        new, _ = measure(f"{work}, two threads", beam, parallel, everything, rounds)
        rows += new
        goals.append(goal(new, "s"))
    return rows, goals


def goal(
    rows: list[Row], unit: str, ours: str = OURS, other: str = CT2, target: float = 1.0
) -> Goal:
    """The speed of one system, as a multiple of another's."""
    value = {row.system: row.value for row in rows if row.unit == unit}
    name = f"{rows[0].work}: {ours}, times {other}"
    return Goal.at_least(name, value[other] / value[ours], target)


if __name__ == "__main__":
    main()
