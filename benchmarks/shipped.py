"""The model that comes along, as one meets it: loading, one sentence, one sentence as it grows.

    python benchmarks/shipped.py [--json FILE]

Each round loads the model anew, as a process of its own would after `import transept`; its first
sentence is timed apart from the others.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from measuring import Goal, Row, report

import transept
from transept import Transducer

SENTENCES = [
    "I would like a cup of tea.",
    "The weather is nice today, so we want to go for a walk.",
    "My sister lives in Berlin and works as a doctor.",
    "The committee has not yet decided whether the proposal should be adopted.",
    "If I had known that you were coming, I would have baked a cake.",
    "He opened the door, looked at the old man who was standing in the rain, and asked him to come in.",
]
ROUNDS = 9


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def loaded() -> Transducer:
    model = transept.load("en-de", device="cpu", engine="native")
    assert isinstance(model, Transducer)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    file = parser.parse_args().json
    times: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        times.setdefault("load", []).append(seconds(loaded))
        model = loaded()
        first = seconds(lambda: model.translate(SENTENCES[0]))
        times.setdefault("first sentence", []).append(first)
        each = [seconds(lambda text=text: model.translate(text)) for text in SENTENCES]
        times.setdefault("a sentence, mean of six", []).append(sum(each) / len(each))
        times.setdefault("the longest of six", []).append(max(each))
        begun = [seconds(lambda text=text: next(model.stream(text))) for text in SENTENCES]
        times.setdefault("first token", []).append(sum(begun) / len(begun))
    rows = [Row.of(work, "en-de, native", values, "s") for work, values in times.items()]
    by_work = {row.work: row.value for row in rows}
    goals = [
        Goal("load, s", by_work["load"], 1.0, by_work["load"] < 1.0),
        Goal("the longest of six, s", by_work["the longest of six"], 0.3,
             by_work["the longest of six"] < 0.3),
    ]  # fmt: skip
    report("shipped", rows, goals, ["torch"], file)


if __name__ == "__main__":
    main()
