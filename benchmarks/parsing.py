"""Section 6.3 on a treebank: train a parser, choose its search on dev, score it on test once.

    python benchmarks/parsing.py --trees DIR --work DIR --minutes 18 [--json FILE]
    python benchmarks/parsing.py --trees DIR --work DIR --semi FILE … --minutes 18 [--json FILE]
    python benchmarks/parsing.py --trees DIR --work DIR --recombined 8 --minutes 18 [--json FILE]
    python benchmarks/parsing.py --trees DIR --work DIR --together MODEL MODEL … [--json FILE]
    python benchmarks/parsing.py --trees DIR --work DIR --grid --minutes 2 [--json FILE]
    python benchmarks/parsing.py --quick

DIR contains train, dev and test as .mrg files, plain or compressed. `--minutes` is the total
training time of a parser: a later command with the same `--work` resumes a training that was
stopped or had fewer minutes, so a GPU can be used in several sessions. The record contains every
scored parser in `--work`, with and without `--semi`. With `--recombined`, a parser is also trained
on copies of the treebank in which constituents are exchanged; this can be combined with `--semi`.
`--together` trains nothing: it scores an ensemble of parsers with the same vocabularies. `--grid`
trains a parser for each setting and compares them on dev. `--quick` runs everything at a small
scale, with generated trees.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch
from measuring import Goal, Row, report
from parsing_stages import (
    Bank,
    Contender,
    Judged,
    Parsed,
    Score,
    Search,
    Workers,
    choose,
    prepared,
    score,
)
from right_branching import baseline

from transept.shelf import find_model
from transept.tasks.parsing.pairs import clean_trees
from transept.text.trees import Tree

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
GOAL = 85.0
ALONE, SEMI, RECOMBINED = "treebank alone", "semi-supervised", "recombined"
TOGETHER = "several together"
DIRECTORIES = {ALONE: "alone", SEMI: "semi", RECOMBINED: "recombined", TOGETHER: "together"}
VOCABULARY = {ALONE: 8000, SEMI: 10_000}
GREEDY = Search(1, 0.3)
HALF = "schedule.factor=0.5"
GRID = {
    "factor 1": ["schedule.factor=1.0"],
    "factor 0.5": [HALF],
    "factor 0.5, dropout 0.2": [HALF, "model.dropout=0.2"],
    "factor 0.5, dropout 0.4, of attention 0.2": [
        HALF, "model.dropout=0.4", "model.attention_dropout=0.2",
    ],
}  # fmt: skip
"""Overrides of the config."""
QUICK = [
    "model.n_layers=1", "model.d_model=64", "model.d_ff=128", "model.dropout=0.0",
    "batch.source_tokens=500", "batch.target_tokens=500", "batch.max_length=120",
    "schedule.warmup_steps=60", "schedule.factor=0.3", "training.max_steps=240",
    "validation.every_steps=120", "checkpoint.every_steps=30",
]  # fmt: skip


# --- a parser --------------------------------------------------------------------------------


def measure(options: argparse.Namespace, bank: Bank, workers: Workers) -> None:
    """Train one parser and score it, or score an ensemble."""
    if options.together:
        directory = options.work / DIRECTORIES[TOGETHER]
        judged = Judged.together(directory, tuple(map(find_model, options.together)))
        parsers = [Row.once("parsers", TOGETHER, len(judged.models), "")]
        judge(TOGETHER, judged, parsers, options, bank, workers)
        return
    vocab_size = options.vocab_size[SEMI if bank.semi else ALONE]
    system = RECOMBINED if bank.copies else SEMI if bank.semi else ALONE
    contender = Contender(options.work / DIRECTORIES[system])
    corpus = prepared(bank, contender.directory, options.tags, vocab_size)
    contender.train(options.config, [*corpus, *options.settings], options.minutes)
    if options.train_only:
        return
    steps, minutes = contender.trained()
    training = [
        Row.once("training", system, steps, "steps"),
        Row.once("training", system, minutes, "minutes"),
    ]
    judge(system, contender.judged, training, options, bank, workers)


def judge(
    system: str, judged: Judged, training: list[Row], options: argparse.Namespace, bank: Bank,
    workers: Workers,
) -> None:  # fmt: skip
    """Choose the search on dev, score it on test, and store the rows for the record."""
    dev, test = trees_of(bank.dev), trees_of(bank.test)
    tried: dict[Search, Score] = {}

    def f1(search: Search) -> float:
        tried[search] = found = judged.score("dev", dev, search, workers)
        print(f"{system}: dev, {search}: F1 {found.f1:.2f}", flush=True)
        return found.f1

    best = choose(f1)
    found = judged.score("test", test, best, workers)
    free = judged.score("test", test, best, workers, "none")
    speed = found.sentences / found.seconds
    rows = [
        *training,
        *(
            Row.once(f"dev, {each}", system, dev_score.f1, "F1")
            for each, dev_score in tried.items()
        ),
        Row.once("chosen on dev", system, best.beam_size, "beam size"),
        Row.once("chosen on dev", system, best.length_penalty, "α"),
        *test_rows(system, found),
        Row.once("test, without the constraint", system, free.f1, "F1"),
        Row.once("test, without the constraint", system, malformed(free), "% malformed"),
        Row.once(f"test, processes: {workers.number}", system, speed, "sentences/s"),
    ]
    text = json.dumps([asdict(row) for row in rows], indent=1)
    rows_file(options.work, system).write_text(text, encoding="utf-8")


def test_rows(system: str, found: Score) -> list[Row]:
    return [
        Row.once("test", system, found.f1, "F1"),
        Row.once("test, at most 40 words", system, found.short_f1, "F1"),
        Row.once("test", system, found.complete_match, "% whole trees"),
        *(Row.once(f"test, {name}", system, f1, "F1") for name, (_, f1) in found.by_length.items()),
    ]


def malformed(found: Score) -> float:
    return 100 * found.malformed / found.sentences


def record(options: argparse.Namespace, bank: Bank) -> None:
    """Report every parser in the work directory, and the baseline."""
    rows, goals = [], []
    for system in DIRECTORIES:
        if rows_file(options.work, system).exists():
            known = json.loads(rows_file(options.work, system).read_text(encoding="utf-8"))
            rows += [Row(**row) for row in known]
            f1 = next(row["value"] for row in known if row["work"] == "test")
            goals.append(Goal.at_least(f"F1 on test, {system}", f1, GOAL))
    test = trees_of(bank.test)
    branching = [*map(str, baseline(test))]
    right = score([str(tree) for tree in test], Parsed(branching, 0, 0.0))
    rows += test_rows("right-branching", right)
    write_report("parsing", rows, goals, options.json)


def rows_file(work: Path, system: str) -> Path:
    return work / DIRECTORIES[system] / "rows.json"


# --- the grid --------------------------------------------------------------------------------


def grid(options: argparse.Namespace, bank: Bank, workers: Workers) -> None:
    """Settings trained for the same time, compared by greedy search on dev."""
    directory = options.work / "grid"
    corpus = prepared(bank, directory, options.tags, options.vocab_size[ALONE])
    # Two settings are enough for a quick check.
    points = dict(islice(GRID.items(), 2)) if options.quick else GRID
    contenders = {name: Contender(directory / name.replace(" ", "-")) for name in points}

    def train(name: str) -> None:
        contenders[name].directory.mkdir(exist_ok=True)
        overrides = [*corpus, *options.settings, *points[name]]
        console = contenders[name].directory / "console.txt"
        contenders[name].train(options.config, overrides, options.minutes, console)
        print(f"{name}: {contenders[name].trained()[0]:,} steps", flush=True)

    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(train, points))
    dev = trees_of(bank.dev)
    rows = []
    for name, contender in contenders.items():
        found = contender.judged.score("dev", dev, GREEDY, workers)
        steps, _ = contender.trained()
        rows.append(Row.once(f"dev, greedy, {steps:,} steps", name, found.f1, "F1"))
    write_report("parsing_grid", rows, [], options.json)
    best = max(rows, key=lambda row: row.value).system
    print(f"best on dev: {best}; continue with --settings {' '.join(points[best])}")


# --- common functions ------------------------------------------------------------------------


def trees_of(path: Path) -> list[Tree]:
    return [*clean_trees([path])]


def write_report(name: str, rows: Sequence[Row], goals: Sequence[Goal], file: Path | None) -> None:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    report(name, rows, goals, ["transept", "torch"], file, gpu)


def generated_trees(directory: Path) -> None:
    """A treebank of a small grammar in which later words decide whether a phrase is nested."""
    chance = random.Random(1)
    directory.mkdir(parents=True, exist_ok=True)
    for part, n in {"train": 1500, "dev": 40, "test": 60}.items():
        trees = "".join(f"{_sentence(chance)}\n" for _ in range(n))
        (directory / f"{part}.mrg").write_text(trees, encoding="utf-8")


def _sentence(chance: random.Random) -> str:
    subject, thing = _noun_phrase(chance, 1), _noun_phrase(chance, 1)
    return f"(S {subject} (VP (VBZ {chance.choice(['sees', 'finds', 'likes'])}) {thing}) (. .))"


def _noun_phrase(chance: random.Random, depth: int) -> str:
    noun = f"(NP (DT the) (NN {chance.choice(['cat', 'dog', 'hen', 'owl'])}))"
    kind = chance.choice(["noun", "with", "that"]) if depth else "noun"
    if kind == "noun":
        return noun
    inner = _noun_phrase(chance, depth - 1)
    if kind == "with":
        return f"(NP {noun} (PP (IN with) {inner}))"
    return f"(NP {noun} (SBAR (WHNP (WDT that)) (S (VP (VBZ likes) {inner}))) (, ,))"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trees", type=Path, help="directory of train, dev and test")
    parser.add_argument("--work", type=Path, help="directory for all files, for resuming")
    parser.add_argument("--semi", type=Path, nargs="+", default=[], metavar="FILE",
                        help="also train on these trees, which a parser produced")  # fmt: skip
    parser.add_argument("--recombined", type=int, default=0, metavar="N", dest="copies",
                        help="also train on N recombined copies of the treebank")  # fmt: skip
    parser.add_argument(
        "--tags", choices=["named", "kept", "XX"], default="named", help="how words are represented"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10.0,
        help="total training time per parser; default: 10",
    )
    parser.add_argument("--together", type=Path, nargs="+", default=[], metavar="MODEL",
                        help="score these as an ensemble, without training")  # fmt: skip
    parser.add_argument("--train-only", action="store_true", help="score in a later command")
    parser.add_argument("--grid", action="store_true", help="compare settings on dev")
    parser.add_argument("--at-once", type=int, default=1, help="parallel trainings of the grid")
    parser.add_argument("--settings", nargs="+", default=[], metavar="KEY=VALUE",
                        help="overrides of the config, as in `transept train`")  # fmt: skip
    parser.add_argument("--workers", type=int, default=1, help="processes that parse; default: 1")
    parser.add_argument("--quick", action="store_true", help="under a minute, with generated trees")
    parser.add_argument("--json", type=Path, help="write the record here")
    options = parser.parse_args()
    if not options.quick and None in (options.trees, options.work):
        parser.error("--trees and --work are required, or --quick")
    return options


def run(options: argparse.Namespace) -> None:
    options.config, options.vocab_size = CONFIGS / "parsing-craft.toml", VOCABULARY
    if options.quick:
        options.config, options.vocab_size = CONFIGS / "parsing-small.toml", {ALONE: 320, SEMI: 320}
        options.settings = [*QUICK, *options.settings]
        options.trees = options.work / "trees"
        generated_trees(options.trees)
    bank = Bank.find(options.trees, options.semi, options.copies)
    with Workers.start(options.workers) as workers:
        if options.grid:
            grid(options, bank, workers)
            return
        measure(options, bank, workers)
    if not options.train_only:
        record(options, bank)


def main() -> None:
    options = arguments()
    if options.work is not None:
        run(options)
        return
    with tempfile.TemporaryDirectory() as directory:
        options.work = Path(directory)
        run(options)


if __name__ == "__main__":
    main()
