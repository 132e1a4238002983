"""How long OpenMP's threads should spin before they sleep, on an idle and on a busy machine.

Each setting has its own process, because libgomp reads its environment when torch is imported. The
processes run interleaved, in a random order per round. A turn is some training steps of the demo's
network, or one sentence translated by the model `en-de`, with all matrix products multithreaded
(`MULTITHREADED` of the native engine). Busy means that other processes compute without a pause. Run
the benchmark on an otherwise idle machine.

    python benchmarks/openmp_spinning.py [--quick] [--json FILE]
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from measuring import Goal, Row, parser_of, report

SPINS = ("0", "100", "1000", "10000", "100000")
DEFAULT, ONE = "2 threads, libgomp's default", "1 thread"
SYSTEMS = {DEFAULT: {"OMP_NUM_THREADS": "2"}, ONE: {"OMP_NUM_THREADS": "1"}} | {
    f"2 threads, GOMP_SPINCOUNT={spins}": {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": spins}
    for spins in SPINS
}
UNITS = {"train": "target tokens/s", "translate": "sentences/s"}
STEPS, BUDGET = 4, 450
SENTENCE = "The committee has not yet decided whether the proposal should be adopted."
BUSY = "while True: pass"


# --- the process of one setting ----------------------------------------------------------------


def training() -> Callable[[], int]:
    """Run some steps; return the number of their target tokens."""
    from workload import bucketed, fresh_update

    from transept.apps.recipes import recipe
    from transept.runtime.device import Runtime

    model = recipe.load("demo").experiment.model
    update = fresh_update(model, Runtime.choose("cpu"))
    batches = bucketed(model.vocab_size, STEPS, BUDGET)

    def steps() -> int:
        for number, pairs in enumerate(batches, start=1):
            update(number, [pairs.batch], pairs.n_target_tokens)
        return sum(pairs.n_target_tokens for pairs in batches)

    return steps


def translating() -> Callable[[], int]:
    """Translate one sentence."""
    import transept
    from transept.engines.native import engine

    engine.MULTITHREADED = 0
    model = transept.load("en-de", device="cpu", engine="native")
    return lambda: len([model.translate(SENTENCE)])


def serve_turns() -> None:
    """Do the work named by each line of standard input, and print the rate."""
    works = {"train": training(), "translate": translating()}
    for line in sys.stdin:
        start = time.perf_counter()
        done = works[line.strip()]()
        print(done / (time.perf_counter() - start), flush=True)


# --- all settings ------------------------------------------------------------------------------


@contextmanager
def system(environment: dict[str, str]) -> Iterator[Callable[[str], float]]:
    """A process with this environment. Calling it with the name of a work returns its rate."""
    plain = {key: value for key, value in os.environ.items() if "OMP_" not in key}
    with subprocess.Popen(
        [sys.executable, __file__, "--turns"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=plain | environment,
    ) as process:

        def turn(work: str) -> float:
            assert process.stdin is not None
            assert process.stdout is not None
            print(work, file=process.stdin, flush=True)
            return float(process.stdout.readline())

        yield turn
        process.kill()


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Processes that compute without a pause."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(rounds: int) -> list[Row]:
    """The rate of each setting, for each work and load."""
    rows = []
    with ExitStack() as stack:
        turns = {name: stack.enter_context(system(env)) for name, env in SYSTEMS.items()}
        for number in range(3):
            with busy(number):
                for work, unit in UNITS.items():
                    label = f"{work}, {number} busy processes"
                    print(label, file=sys.stderr)
                    rates = take_turns(turns, work, rounds)
                    rows += [Row.of(label, name, rates[name], unit) for name in SYSTEMS]
    return rows


def take_turns(
    turns: dict[str, Callable[[str], float]], work: str, rounds: int
) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {name: [] for name in turns}
    chance = random.Random(0)
    for number in range(rounds + 1):
        for name in chance.sample(sorted(turns), len(turns)):
            rate = turns[name](work)
            if number > 0:  # the first warms up
                rates[name].append(rate)
    return rates


def goals(rows: list[Row]) -> list[Goal]:
    """The setting of `transept` compared with the best one, in training."""
    from transept.cli.app import SPIN_COUNT

    chosen = f"2 threads, GOMP_SPINCOUNT={SPIN_COUNT}"
    rates = {(row.work, row.system): row.value for row in rows}
    works = dict.fromkeys(row.work for row in rows if row.work.startswith("train"))
    return [
        Goal.at_least(
            f"{work}: {chosen} / the best",
            rates[work, chosen] / max(rates[work, name] for name in SYSTEMS),
            0.8,
        )
        for work in works
    ]


def main() -> None:
    parser = parser_of(__doc__, quick="few rounds, some minutes")
    parser.add_argument("--turns", action="store_true", help="run as the process of one setting")
    arguments = parser.parse_args()
    if arguments.turns:
        serve_turns()
        return
    rows = measure(rounds=3 if arguments.quick else 15)
    report("openmp_spinning", rows, goals(rows), ["torch"], arguments.json)


if __name__ == "__main__":
    main()
