"""Table 4: the parser of section 6.3 as the paper describes it, on another treebank.

    python benchmarks/table4.py --trees DIR --work DIR --minutes 7 [--rows NAME …] [--json FILE]
    python benchmarks/table4.py --quick

DIR contains train, dev and test as .mrg files, plain or compressed. configs/table4 has a config for
each row: `paper`, and others that change one setting of it. The rows train one after another for
`--minutes` each, and are scored with the paper's search: beam 21, α 0.3.

Each command resumes what it finds in `--work`. The record contains every row that was scored there,
so rows can be measured by separate commands. `--rows` without a name only writes the record of an
interrupted command. `--quick` runs everything at a small scale, with generated trees.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from measuring import Row, parser_of
from parsing import CONFIGS, QUICK, generated_trees, malformed, test_rows, trees_of, write_report
from parsing_stages import Bank, Contender, Search, Workers, prepared

from transept.data.shards import MANIFEST
from transept.tasks.parsing.leaves import TagsName
from transept.training.observers import METRICS


class Setting(NamedTuple):
    """A config in configs/table4: its name in the record, and the symbols for words."""

    system: str
    tags: TagsName


SETTINGS = {
    "paper": Setting("the paper's setting", "XX"),
    "rate": Setting("lower learning rate", "XX"),
    "named": Setting("named words", "named"),
    "released": Setting("tensor2tensor's values", "kept"),
}
VOCABULARY = 16_000
SEARCH = Search(21, 0.3)
PART = 4  # dev, every 4th sentence
LOSS = "−log p per symbol"
SAVING = (0.85, 0.025)
"""When checkpoints begin and their interval, as shares of the run. The last five are averaged and
cover about a tenth of the run, as in the paper. Earlier ones would only take time."""


def train(contender: Contender, name: str, corpus: list[str], options: argparse.Namespace) -> None:
    """Train one row until it has `--minutes` in total."""
    first, every = (share * options.minutes for share in SAVING)
    times = [f"checkpoint.after_minutes={first}", f"checkpoint.every_minutes={every}"]
    overrides = [*corpus, *times, *options.settings]
    contender.train(CONFIGS / "table4" / f"{name}.toml", overrides, options.minutes)


def training_rows(contender: Contender, system: str, corpus: Path) -> Iterator[Row]:
    """The length of the training, and the loss on dev in its course."""
    steps, minutes = contender.trained()
    yield Row.once("training", system, steps, "steps")
    yield Row.once("training", system, minutes, "minutes")
    lines = (contender.run / METRICS).read_text(encoding="utf-8").splitlines()
    metrics = [json.loads(line) for line in lines]
    seen = max(line["target_tokens"] for line in metrics if line["kind"] == "step")
    tokens = json.loads((corpus / MANIFEST).read_text(encoding="utf-8"))["target"]["tokens"]
    yield Row.once("training", system, seen / tokens, "passes")
    losses = {line["step"]: line["nll"] for line in metrics if line["kind"] == "validation"}
    if not losses:  # the training was shorter than the interval of validations
        return
    first = min(losses)
    for step, nll in losses.items():
        # The steps double, because the loss changes most at the beginning.
        if step % first == 0 and (step // first).bit_count() == 1:
            yield Row.once(f"dev, step {step:,}", system, nll, LOSS)
    yield Row.once("dev, lowest", system, min(losses.values()), LOSS)


def scored_rows(contender: Contender, system: str, bank: Bank, workers: Workers) -> Iterator[Row]:
    """F1 on a part of dev and on test, with and without the constraint."""
    dev, test, judged = trees_of(bank.dev)[::PART], trees_of(bank.test), contender.judged
    for search in (Search(1, SEARCH.length_penalty), SEARCH):
        f1 = judged.score("dev", dev, search, workers).f1
        print(f"{system}: dev, {search}: F1 {f1:.2f}", flush=True)
        yield Row.once(f"dev, every {PART}th sentence, {search}", system, f1, "F1")
    found = judged.score("test", test, SEARCH, workers)
    print(f"{system}: test, {SEARCH}: F1 {found.f1:.2f}", flush=True)
    yield from test_rows(system, found)
    free = judged.score("test", test, SEARCH, workers, "none")
    yield Row.once("test, without the constraint", system, free.f1, "F1")
    yield Row.once("test, without the constraint", system, malformed(free), "% malformed")
    speed = found.sentences / found.seconds
    yield Row.once(f"test, processes: {workers.number}", system, speed, "sentences/s")


def measure(name: str, options: argparse.Namespace, bank: Bank, workers: Workers) -> None:
    """Train and score one row, and store it for the record."""
    system, tags = SETTINGS[name]
    corpora = options.work / "corpora" / tags
    corpus = prepared(bank, corpora, tags, options.vocab_size)
    contender = Contender(options.work / name)
    train(contender, name, corpus, options)
    rows = [*training_rows(contender, system, corpora / "train")]
    for row in scored_rows(contender, system, bank, workers):
        rows.append(row)
        # Stored after each score, so that an interrupted command leaves what it has.
        text = json.dumps([asdict(each) for each in rows], indent=1)
        rows_file(options.work, name).write_text(text, encoding="utf-8")


def record(options: argparse.Namespace) -> None:
    """Report every row in the work directory."""
    rows = []
    for name in SETTINGS:
        if (file := rows_file(options.work, name)).exists():
            rows += [Row(**row) for row in json.loads(file.read_text(encoding="utf-8"))]
    write_report("table4", rows, [], options.json)


def rows_file(work: Path, name: str) -> Path:
    return work / name / "rows.json"


def arguments() -> argparse.Namespace:
    parser = parser_of(__doc__ or "", "a minute per row, with generated trees")
    parser.add_argument("--trees", type=Path, help="directory of train, dev and test")
    parser.add_argument("--work", type=Path, help="directory for all files, for resuming")
    parser.add_argument("--rows", nargs="*", metavar="NAME", default=["paper", "rate", "named"],
                        help=f"of {', '.join(SETTINGS)}; none: only write the record")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=7.0,
                        help="total training time per row; default: 7")  # fmt: skip
    parser.add_argument("--settings", nargs="+", default=[], metavar="KEY=VALUE",
                        help="overrides of the config, as in `transept train`")  # fmt: skip
    parser.add_argument("--workers", type=int, default=1, help="processes that parse; default: 1")
    options = parser.parse_args()
    if not options.quick and None in (options.trees, options.work):
        parser.error("--trees and --work are required, or --quick")
    if unknown := {*options.rows} - SETTINGS.keys():
        parser.error(f"unknown row: {', '.join(sorted(unknown))}")
    return options


def run(options: argparse.Namespace) -> None:
    options.vocab_size = VOCABULARY
    if options.quick:
        options.vocab_size = 320
        options.settings = [*QUICK, *options.settings]
        options.trees = options.work / "trees"
        generated_trees(options.trees)
    bank = Bank.find(options.trees)
    with Workers.start(options.workers) as workers:
        for name in options.rows:
            measure(name, options, bank, workers)
    record(options)


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
