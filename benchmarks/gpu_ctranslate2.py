"""Decoding speed on a GPU compared with CTranslate2: output tokens per second, same weights.

Weights are random, and outputs are forced to their full length. Both systems use float16 and run
one after the other in one process. CTranslate2 gets its best batch size.

    python benchmarks/gpu_ctranslate2.py [--json FILE]
"""

import statistics
import tempfile
from functools import partial
from pathlib import Path

import ctranslate2
import torch
from measuring import Goal, Row, parser_of, report
from measuring import seconds as measured_seconds
from workload import LENGTH, MODELS, NO_END, random_model, sources

from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.fused.engine import FusedSearch
from transept.formats import ctranslate2_writer as export

OURS, THEIRS = "transept fp16", "CTranslate2 float16"
CELLS = [(1, 1), (1, 4), (64, 1), (64, 4), (1024, 4), (3003, 4)]
BATCH_SIZES = (64, 256, 512)
TIMES = 2.0

seconds = partial(measured_seconds, wait=torch.cuda.synchronize)


def compared() -> tuple[list[Row], list[Goal]]:
    model = random_model(MODELS["base"])
    pieces = [f"t{index}" for index in range(model.config.vocab_size)]
    rows, goals = [], []
    with tempfile.TemporaryDirectory() as directory:
        export.save(model, export.Names(pieces, pieces), Path(directory), quantization="float16")
        translator = ctranslate2.Translator(directory, device="cuda", compute_type="float16")
    ours = FusedSearch(model.cuda(), torch.float16, NO_END)
    for n, beam in CELLS:
        some = sources(n, model.config.vocab_size)
        inputs = [Input(source, LENGTH) for source in some]
        config = SearchConfig(beam_size=beam)
        assert all(len(best.ids) == LENGTH for best, *_ in ours(inputs, config))
        words = [[pieces[index] for index in source] for source in some]
        mine = seconds(lambda: ours(inputs, config), 9)  # noqa: B023
        theirs = min(
            (seconds(partial(translate, translator, words, beam, size), 3) for size in BATCH_SIZES),
            key=statistics.median,
        )
        search = "greedy" if beam == 1 else f"beam {beam}"
        work = f"base, {search}, {n:,} sentence{'s' * (n > 1)}"
        for system, times in ((OURS, mine), (THEIRS, theirs)):
            speeds = [n * LENGTH / one for one in times]
            rows.append(Row.of(work, system, speeds, "output tokens/s"))
        ratio = statistics.median(theirs) / statistics.median(mine)
        goals.append(Goal.at_least(f"{work}: times CTranslate2", ratio, TIMES))
    return rows, goals


def translate(
    translator: ctranslate2.Translator, words: list[list[str]], beam: int, batch_size: int
) -> None:
    found = translator.translate_batch(
        words, beam_size=beam, min_decoding_length=LENGTH, max_decoding_length=LENGTH,
        max_batch_size=batch_size, batch_type="examples",
    )  # fmt: skip
    assert all(len(one.hypotheses[0]) == LENGTH for one in found)


def main() -> None:
    args = parser_of(__doc__ or "").parse_args()
    rows, goals = compared()
    report(
        "gpu_ctranslate2", rows, goals, ["torch", "triton", "ctranslate2"], args.json,
        torch.cuda.get_device_name(),
    )  # fmt: skip


if __name__ == "__main__":
    main()
