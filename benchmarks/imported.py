"""An imported OPUS-MT-sized model: speed compared with transformers and CTranslate2, beam 4.

transformers writes a MarianMT model with 6 + 6 layers, d_model 512, swish and a vocabulary of
60,000 entries. It is imported and run by the engine `fused`, by `generate` of transformers and by
CTranslate2, in float16, one after the other in one process. Weights are random, and outputs are
forced to 30 tokens. The other programs get their best batch size. With --cpu, the engine `native`
and CTranslate2 run in single precision on one core.

    python benchmarks/imported.py [--cpu] [--json FILE]
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ctranslate2
import torch
from gpu_ctranslate2 import translate
from measuring import Goal, Row, parser_of, report
from measuring import seconds as measured_seconds
from sentencepiece import SentencePieceTrainer
from torch import nn
from transformers import MarianConfig, MarianMTModel
from workload import LENGTH, NO_END, Ids, sources

import transept
from transept.apps.convert.importing import import_model
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.fused.engine import FusedSearch
from transept.engines.native.network import IncrementalDecoder, encode
from transept.formats import ctranslate2_writer as export
from transept.model.transformer import Transformer

VOCABULARY, BEAM = 60_000, 4
SEARCH = SearchConfig(beam_size=BEAM)
OURS, HF, CT2 = "transept fp16", "transformers fp16", "CTranslate2 float16"

seconds = partial(measured_seconds, wait=torch.cuda.synchronize)


def write_marian(directory: Path) -> MarianMTModel:
    """An OPUS-MT-sized MarianMT directory with random weights, as `save_pretrained` writes it."""
    torch.manual_seed(0)
    pad = VOCABULARY - 1
    model = MarianMTModel(
        MarianConfig(
            vocab_size=VOCABULARY, d_model=512, encoder_layers=6, decoder_layers=6,
            encoder_ffn_dim=2048, decoder_ffn_dim=2048, encoder_attention_heads=8,
            decoder_attention_heads=8, activation_function="swish", scale_embedding=True,
            max_position_embeddings=512, pad_token_id=pad, decoder_start_token_id=pad,
            eos_token_id=0, forced_eos_token_id=None,
        )
    ).eval()  # fmt: skip
    with torch.no_grad():
        model.final_logits_bias.normal_(std=0.1)
        nn.init.normal_(model.model.decoder.layers[-1].final_layer_norm.weight)
    model.generation_config.bad_words_ids = [[pad]]
    model.save_pretrained(directory)
    entries = ["</s>", "<unk>", *(f"t{index}" for index in range(VOCABULARY - 3)), "<pad>"]
    table = {entry: index for index, entry in enumerate(entries)}
    (directory / "vocab.json").write_text(json.dumps(table))
    for name in ("source", "target"):
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f"]), model_prefix=str(directory / name),
            vocab_size=12, hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
        (directory / f"{name}.model").rename(directory / f"{name}.spm")
    return model


def on_gpu() -> tuple[list[Row], list[Goal]]:
    imported, hf = both()
    translator = exported(imported, device="cuda", compute_type="float16")
    ours = FusedSearch(imported.cuda(), torch.float16, NO_END)
    hf = hf.half().cuda()
    rows, goals = [], []
    for n in (1, 64, 1024):
        some = sources(n, VOCABULARY)
        inputs = [Input(source, LENGTH) for source in some]
        assert all(len(best.ids) == LENGTH for best, *_ in ours(inputs, SEARCH))
        times = {
            OURS: seconds(lambda: ours(inputs, SEARCH), 9),  # noqa: B023
            HF: best_of(partial(generate, hf, torch.tensor(some).cuda()), n),
            CT2: best_of(partial(translate, translator, names(some), BEAM), n),
        }
        each_rows, each_goals = judged(n, times, {HF: 10.0, CT2: 2.0}, "output tokens/s")
        rows += each_rows
        goals += each_goals
    return rows, goals


def on_cpu() -> tuple[list[Row], list[Goal]]:
    """One thread each, in turns. Speeds are per CPU-second."""
    torch.set_num_threads(1)
    imported, _ = both()
    translator = exported(imported, compute_type="float32", inter_threads=1, intra_threads=1)
    rows, goals = [], []
    for n in (1, 32):
        some = sources(n, VOCABULARY)
        work: dict[str, Callable[[], object]] = {
            "transept": partial(native, imported, some),
            "CTranslate2 float32": partial(translate, translator, names(some), BEAM, n),
        }
        times: dict[str, list[float]] = {system: [] for system in work}
        for turn in range(6 if n == 1 else 4):
            for system, run in work.items():
                start = time.process_time()
                run()
                if turn:  # the first one warms up
                    times[system].append(time.process_time() - start)
        goal = {"CTranslate2 float32": 0.95}
        each_rows, each_goals = judged(n, times, goal, "output tokens/CPU-s")
        rows += each_rows
        goals += each_goals
    return rows, goals


def judged(
    n: int, times: dict[str, list[float]], wanted: dict[str, float], unit: str
) -> tuple[list[Row], list[Goal]]:
    work = f"6 + 6 layers, 60,000 entries, beam 4, {n:,} sentence{'s' * (n > 1)}"
    rows = [
        Row.of(work, system, [n * LENGTH / one for one in each], unit)
        for system, each in times.items()
    ]
    mine = statistics.median(next(iter(times.values())))
    goals = [
        Goal.at_least(f"{work}: times {system}", statistics.median(times[system]) / mine, goal)
        for system, goal in wanted.items()
    ]
    return rows, goals


def both() -> tuple[Transformer, MarianMTModel]:
    """The imported network and its original."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        hf = write_marian(directory / "marian")
        import_model(directory / "marian", directory / "ours")
        return transept.load(directory / "ours", device="cpu", engine="native").model, hf


def exported(model: Transformer, **how: Any) -> Any:
    entries = [f"t{index}" for index in range(VOCABULARY)]
    with tempfile.TemporaryDirectory() as folder:
        export.save(model, export.Names(entries, entries), Path(folder))
        return ctranslate2.Translator(folder, **how)


def names(ids: Ids) -> list[list[str]]:
    return [[f"t{index}" for index in source] for source in ids]


def best_of(work: Callable[[int], object], n: int) -> list[float]:
    """The times with the best batch size."""
    sizes = [size for size in (64, 256, 512) if size <= n] or [n]
    return min((seconds(partial(work, size), 3) for size in sizes), key=statistics.median)


@torch.inference_mode()
def native(model: Transformer, ids: Ids) -> None:
    step = IncrementalDecoder(model, encode(model, torch.tensor(ids)))
    found = search(step, [LENGTH] * len(ids), SEARCH, NO_END)
    assert all(len(best.ids) == LENGTH for best, *_ in found)


@torch.inference_mode()
def generate(model: MarianMTModel, ids: torch.Tensor, batch_size: int) -> None:
    for some in ids.split(batch_size):
        found = model.generate(
            input_ids=some, attention_mask=torch.ones_like(some), num_beams=BEAM, do_sample=False,
            max_length=None, min_new_tokens=LENGTH, max_new_tokens=LENGTH,
        )  # fmt: skip
        assert found.shape[1] == LENGTH + 1


def main() -> None:
    parser = parser_of(__doc__ or "")
    parser.add_argument("--cpu", action="store_true", help="compare with CTranslate2 on one core")
    args = parser.parse_args()
    rows, goals = on_cpu() if args.cpu else on_gpu()
    device = None if args.cpu else torch.cuda.get_device_name()
    packages = ["torch", "triton", "transformers", "ctranslate2"]
    name = "cpu_imported" if args.cpu else "gpu_imported"
    report(name, rows, goals, packages, args.json, device)


if __name__ == "__main__":
    main()
