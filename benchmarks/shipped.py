"""The bundled model: time to load it, to translate a sentence, and to stream the first token.

    python benchmarks/shipped.py [--json FILE]

Each round loads the model again, like a new process after `import transept`. Its first sentence is
timed separately.
"""

import statistics
import time
from collections.abc import Callable

from measuring import Goal, Row, parser_of, report

import transept
from transept import Transducer

SENTENCES = [
    "I would like a cup of tea.",
    "The weather is nice today, so we want to go for a walk.",
    "My sister lives in Berlin and works as a doctor.",
    "The committee has not yet decided whether the proposal should be adopted.",
    "If I had known that you were coming, I would have baked a cake.",
    "He opened the door, looked at the old man who stood in the rain, and asked him to come in.",
]
ROUNDS = 9
LONGEST = "the longest of six"


def seconds(work: Callable[..., object], *arguments: object) -> float:
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def loaded() -> Transducer:
    return transept.load("en-de", device="cpu", engine="native")


def one_round() -> dict[str, float]:
    load = seconds(loaded)
    model = loaded()
    first = seconds(model.translate, SENTENCES[0])
    each = [seconds(model.translate, text) for text in SENTENCES]
    begun = [seconds(lambda text: next(model.stream(text)), text) for text in SENTENCES]
    return {
        "load": load,
        "first sentence": first,
        "a sentence, mean of six": statistics.mean(each),
        LONGEST: max(each),
        "first token, mean of six": statistics.mean(begun),
    }


def main() -> None:
    parser = parser_of(__doc__)
    file = parser.parse_args().json
    rounds = [one_round() for _ in range(ROUNDS)]
    rows = [Row.of(work, "en-de, native", [one[work] for one in rounds], "s") for work in rounds[0]]
    found = {row.work: row.value for row in rows}
    goals = [Goal.below("load", found["load"], 1.0), Goal.below(LONGEST, found[LONGEST], 0.3)]
    report("shipped", rows, goals, ["torch"], file)


if __name__ == "__main__":
    main()
