"""`transept serve` on a CPU, compared with direct calls of CTranslate2 with batches of equal size.

    python benchmarks/server_ctranslate2.py [--quick] [--json FILE]

Both have the bundled en-de in 8-bit integers, beam 4 and one thread. N clients each send a
sentence, wait for the answer and send the next. CTranslate2 gets the same sentences in batches of
N. Its time includes tokenization, but no rules for sentences, numbers and markup. Both take turns.
"""

import itertools
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import ctranslate2
from measuring import Goal, Row, parser_of, report
from served import answers_of, serving
from server import cpu_seconds

import transept
from transept.decoding.config import SearchConfig
from transept.formats import ctranslate2_writer
from transept.formats.ctranslate2_writer import Names

CLIENTS = (1, 8, 32)
WHO = ["The old man", "My sister", "Our new teacher", "The committee", "A friend of mine"]
DOES = [
    "is reading the newspaper", "has bought a bicycle", "wants to discuss the budget",
    "did not answer the letter", "will visit the museum",
]  # fmt: skip
WHEN = [
    "today.", "because the weather is nice.", "before the meeting begins.",
    "although nobody had expected it, and everybody was surprised.",
]  # fmt: skip

Rates = tuple[float, float]
"""Sentences per second and per CPU-second."""


def sentences() -> list[str]:
    """100 sentences. Neighbours differ in length."""
    return [f"{who} {does} {when}" for who, does, when in itertools.product(WHO, DOES, WHEN)]


class Direct:
    """The network in CTranslate2, with its tokenizers."""

    def __init__(self) -> None:
        model = transept.load("en-de")
        self._tokenizers = model.source_tokenizer, model.target_tokenizer
        names = [[f"{n}" for n in range(one.vocab_size)] for one in self._tokenizers]
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory)
            ctranslate2_writer.save(model.model, Names(*names), path, quantization="int8")
            self._translator = ctranslate2.Translator(
                directory, compute_type="int8", inter_threads=1, intra_threads=1
            )

    def translate(self, texts: Sequence[str]) -> list[str]:
        source, target = self._tokenizers
        ids = [source.framed(one) for one in source.encode_batch(texts)]
        results = self._translator.translate_batch(
            [list(map(str, one)) for one in ids],
            beam_size=4,
            length_penalty=0.6,
            max_decoding_length=SearchConfig().max_length(max(map(len, ids))),
        )
        return [target.decode([int(one) for one in each.hypotheses[0]]) for each in results]


def batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Batches as the clients of the other side send them: each starts at another sentence."""
    for at in itertools.count():
        yield [texts[(37 * client + at) % len(texts)] for client in range(size)]


def measure_direct(direct: Direct, texts: Sequence[str], clients: int, seconds: float) -> Rates:
    start, cpu, n = time.perf_counter(), time.process_time(), 0
    for batch in batches(texts, clients):
        n += len(direct.translate(batch))
        if time.perf_counter() - start >= seconds:
            break
    return n / (time.perf_counter() - start), n / (time.process_time() - cpu)


def main() -> None:
    arguments = parser_of(__doc__, quick="seconds instead of minutes").parse_args()
    rounds, seconds = (2, 1.0) if arguments.quick else (7, 2.0)
    texts, direct = sentences(), Direct()
    found: dict[tuple[int, str], list[Rates]] = {}
    os.environ["OMP_NUM_THREADS"] = "1"
    with serving("--model", "en-de") as (process, port, _):
        for turn in range(rounds + 1):
            for clients in CLIENTS:
                cpu = cpu_seconds(process)
                answers, took = answers_of(port, texts, clients, 1, seconds)
                served = len(answers) / took, len(answers) / (cpu_seconds(process) - cpu)
                rates = measure_direct(direct, texts, clients, seconds)
                if turn:  # the first one warms up
                    found.setdefault((clients, "server"), []).append(served)
                    found.setdefault((clients, "CTranslate2"), []).append(rates)
    rows, goals = [], []
    for index, unit in enumerate(("sentences/s", "sentences/CPU-s")):
        for clients in CLIENTS:
            work = f"{clients} client{'s' * (clients > 1)}"
            both = [
                Row.of(work, name, [rate[index] for rate in found[clients, name]], unit)
                for name in ("server", "CTranslate2")
            ]
            rows += both
            goals.append(
                Goal.at_least(
                    f"{work}, {unit}: server / CTranslate2", both[0].value / both[1].value, 0.9
                )
            )
    packages = ["torch", "ctranslate2", "starlette", "uvicorn"]
    report("server_ctranslate2", rows, goals, packages, arguments.json)


if __name__ == "__main__":
    main()
