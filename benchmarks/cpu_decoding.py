"""Decoding speed on a CPU: output tokens per CPU-second, one thread, compared with other engines.

All engines get the same random weights and the same sources of 30 tokens, and must return 30 tokens
for each: the end symbol is suppressed. They run interleaved in one process, encoder included. Their
outputs are compared before the measurement.

    python benchmarks/cpu_decoding.py [--compile] [--quick] [--json FILE]
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import torch
from marian import can_compile, to_marian
from measuring import Goal, Row, parser_of, report
from workload import LENGTH, MODELS, NO_END, Ids, random_model, sources

from transept import Transformer
from transept.cli.app import keep_freed_memory
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.ctranslate2 import CTranslate2Engine
from transept.engines.native.engine import NativeEngine
from transept.engines.native.network import IncrementalDecoder, encode
from transept.formats import ctranslate2_writer as export
from transept.formats.ctranslate2_writer import Names
from transept.progress import no_progress
from transept.text.tokenizer import PAD_ID

OURS, HF, CT2, INT8 = "transept", "HF MarianMT", "CTranslate2 float32", "CTranslate2 int8"
HF_EAGER, HF_COMPILED = f"{HF}, eager attention", f"{HF}, torch.compile"
CT2_SCORED, INT8_SCORED = f"{CT2}, with log P", f"{INT8}, with log P"
ENGINE = "transept, engine ctranslate2-int8"
RATIOS = {f"{OURS} / this": (OURS, [HF, HF_EAGER, HF_COMPILED, CT2, CT2_SCORED, INT8]),
          f"{ENGINE} / this": (ENGINE, [INT8_SCORED])}  # fmt: skip
"""The ratios to report. Our outputs always include log P, which CTranslate2 omits in greedy search
by default."""

Decode = Callable[[Ids, int], Ids]
"""Returns the best outputs for some sources with a given beam size."""


@dataclass(frozen=True)
class Cell:
    """One kind of work: batch size and beam size."""

    batch: int
    beam: int

    def __str__(self) -> str:
        search = "greedy" if self.beam == 1 else f"beam {self.beam}"
        return f"{search}, batch {self.batch}"


CELLS = [Cell(batch, beam) for batch in (32, 1) for beam in (1, 4)]


def transept_decoder(model: Transformer) -> Decode:
    def decode(sources: Ids, beam: int) -> Ids:
        with torch.inference_mode():
            step = IncrementalDecoder(model, encode(model, torch.tensor(sources)))
            lengths = [LENGTH] * len(sources)
            found = search(step, lengths, SearchConfig(beam_size=beam), NO_END)
        return [list(best.ids) for best, *_ in found]

    return decode


def marian_decoder(model: Transformer, attention: str = "sdpa", compiled: bool = False) -> Decode:
    marian = to_marian(model, attn_implementation=attention)
    if compiled:
        marian.forward = torch.compile(marian.forward, dynamic=True)

    def decode(sources: Ids, beam: int) -> Ids:
        ids = torch.tensor(sources)
        with torch.inference_mode():
            out = marian.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                num_beams=beam,
                do_sample=False,
                max_new_tokens=LENGTH,
            )
        ids_of: Ids = out[:, 1:].tolist()  # without the start token
        return ids_of

    return decode


def exported(model: Transformer, compute_type: str, threads: int = 1) -> ctranslate2.Translator:
    """The same weights for CTranslate2, with a batch per thread."""
    with tempfile.TemporaryDirectory() as directory:
        export.save(model, numbers(model), Path(directory))
        return ctranslate2.Translator(
            directory, compute_type=compute_type, inter_threads=threads, intra_threads=1
        )


def ctranslate2_decoder(model: Transformer, compute_type: str, scores: bool = False) -> Decode:
    translator = exported(model, compute_type)

    def decode(sources: Ids, beam: int) -> Ids:
        results = translator.translate_batch(
            [list(map(str, source)) for source in sources],
            beam_size=beam,
            min_decoding_length=LENGTH,
            max_decoding_length=LENGTH,
            return_scores=scores,
        )
        return [list(map(int, result.hypotheses[0])) for result in results]

    return decode


def engine_decoder(model: Transformer) -> Decode:
    """CTranslate2 as in `transept translate`. The end symbol is padding, which never occurs."""
    native = NativeEngine([model])
    engine = CTranslate2Engine(model, numbers(model), native, "int8", eos_id=PAD_ID)

    def decode(sources: Ids, beam: int) -> Ids:
        inputs = [Input(source, LENGTH) for source in sources]
        found = engine.search(inputs, SearchConfig(beam_size=beam), no_progress)
        return [list(best.ids) for best, *_ in found]

    return decode


def numbers(model: Transformer) -> Names:
    """Token names: their ids."""
    names = [str(token) for token in range(model.config.vocab_size)]
    return Names(names, names)


def engines(model: Transformer, compiled: bool) -> dict[str, Decode]:
    return {
        OURS: transept_decoder(model),
        HF: marian_decoder(model),
        HF_EAGER: marian_decoder(model, attention="eager"),
        **({HF_COMPILED: marian_decoder(model, compiled=True)} if compiled else {}),
        CT2: ctranslate2_decoder(model, "float32"),
        CT2_SCORED: ctranslate2_decoder(model, "float32", scores=True),
        INT8: ctranslate2_decoder(model, "int8"),
        INT8_SCORED: ctranslate2_decoder(model, "int8", scores=True),
        ENGINE: engine_decoder(model),
    }


def check(decoders: Mapping[str, Decode], batch: Ids, beam: int) -> None:
    """The engines in single precision must agree, up to near ties."""
    expected = decoders[OURS](batch, beam)
    for name, decode in decoders.items():
        found = decode(batch, beam)
        assert all(len(ids) == LENGTH for ids in found), f"{name} returns other lengths"
        same = sum(a == b for a, b in zip(found, expected, strict=True)) / len(batch)
        if name not in (INT8, INT8_SCORED, ENGINE) and same < 0.9:
            sys.exit(f"{name} agrees with {OURS} in only {same:.0%} of the outputs (beam {beam})")


def measure(name: str, cell: Cell, decoders: Mapping[str, Decode], rounds: int) -> list[Row]:
    """Medians of the rates over the rounds, and of the ratios per round."""
    rates: dict[str, list[float]] = {system: [] for system in decoders}
    for number in range(rounds + 1):
        batches = [
            sources(cell.batch, MODELS[name].vocab_size) for _ in range(4 if cell.batch == 1 else 1)
        ]
        for system, decode in decoders.items():
            start = time.process_time()
            for batch in batches:
                decode(batch, cell.beam)
            seconds = time.process_time() - start
            if number > 0:  # the first round warms up
                rates[system].append(len(batches) * cell.batch * LENGTH / seconds)
    work = f"{name}, {cell}"
    rows = [Row.of(work, system, values, "output tokens/CPU-s") for system, values in rates.items()]
    for unit, (numerator, systems) in RATIOS.items():
        for system in filter(rates.__contains__, systems):
            ratios = [a / b for a, b in zip(rates[numerator], rates[system], strict=True)]
            rows.append(Row.of(work, system, ratios, unit))
    return rows


def goals(rows: list[Row]) -> list[Goal]:
    """At least 1.5 × HF with the small model, and never slower than CTranslate2."""
    targets = {
        HF: (1.5, ["small"]),
        CT2: (1.0, ["small", "base"]),
        INT8_SCORED: (0.95, ["small", "base"]),
    }
    return [
        Goal.at_least(
            f"{row.work}: {row.unit.replace('this', row.system)}",
            row.value,
            targets[row.system][0],
        )
        for row in rows
        if row.unit in RATIOS
        and row.system in targets
        and row.work.split(",")[0] in targets[row.system][1]
    ]


def main() -> None:
    parser = parser_of(__doc__, quick="small only, under a minute")
    parser.add_argument("--compile", action="store_true", help="add torch.compile: minutes more")
    arguments = parser.parse_args()
    one_thread()
    compiled = arguments.compile and can_compile()
    rounds = {"small": 3} if arguments.quick else {"small": 9, "base": 3}
    rows = []
    for name, n_rounds in rounds.items():
        decoders = engines(random_model(MODELS[name]), compiled)
        for beam in (1, 4):
            check(decoders, sources(8, MODELS[name].vocab_size), beam)
        for cell in CELLS:
            rows += measure(name, cell, decoders, n_rounds)
    packages = ["transept", "torch", "transformers", "ctranslate2"]
    report("cpu_decoding", rows, goals(rows), packages, arguments.json)


def one_thread() -> None:
    """Restart the process with one thread for every library.

    `torch.set_num_threads(1)` is too late for the matrix products of OpenBLAS and oneDNN: some of
    them still run on two cores, and the CPU time of the second is not always counted. torch's
    allocator is configured as in `transept`, for every system in the process.
    """
    before = dict(os.environ)
    keep_freed_memory()
    os.environ["OMP_NUM_THREADS"] = "1"
    if os.environ != before:
        os.execv(sys.executable, [sys.executable, *sys.argv])


if __name__ == "__main__":
    main()
