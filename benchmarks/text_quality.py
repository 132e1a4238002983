"""What translations of test sets gain and lose: punctuation, numbers, quotation marks, repetitions.

    python benchmarks/text_quality.py PREFIX… [--model en-de=DIR] [--output FILE] [--json FILE]

PREFIX.en, and PREFIX.de or PREFIX.fr, have one sentence per line. All directions of the bundled
models are translated and measured, and the other file is measured in the same way as the reference.
`--output` measures a file of translations instead; with it, give one PREFIX and one `--direction`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from measuring import Row, parser_of, print_across, write_record
from text_checks import (
    double_quotes,
    final_mark,
    has_loop,
    has_unbalanced_quotes,
    lost_numbers,
    numbers,
    share_of_capitals,
)

import transept
from transept.api.config import EngineName

Translate = Callable[[Sequence[str]], list[str]]
DIRECTIONS = ("en-de", "de-en", "en-fr", "fr-en")
STOPS = {".", "!", "?", "…", ":"}
SHORTEST, LONGEST = 0.5, 2.0
"""Characters of a translation per character of its source, for lines that are not outliers."""
LEAST = 20
"""Characters of a source whose ratio is measured. The ratio of a shorter one means little."""
CAPITALS = 0.75
"""The share of capitals in a line that is written in capitals."""


class Line(NamedTuple):
    """A line of the source and its translation."""

    source: str
    output: str
    direction: str


class Measure(NamedTuple):
    """The share of lines that have a fault, among the lines that could have it."""

    name: str
    applies: Callable[[Line], bool]
    has_fault: Callable[[Line], bool]


def always(_: Line) -> bool:
    return True


def ends(text: str) -> bool:
    return final_mark(text) in STOPS


def is_outlier(line: Line) -> bool:
    return not SHORTEST <= len(line.output) / len(line.source) <= LONGEST


def is_capital(text: str) -> bool:
    return share_of_capitals(text) >= CAPITALS


MEASURES = [
    Measure(
        "final mark added",
        lambda line: not final_mark(line.source),
        lambda line: ends(line.output),
    ),
    Measure("final mark lost", lambda line: ends(line.source), lambda line: not ends(line.output)),
    Measure(
        "final mark changed",
        lambda line: ends(line.source),
        lambda line: ends(line.output) and final_mark(line.output) != final_mark(line.source),
    ),
    Measure(
        "number lost",
        lambda line: bool(numbers(line.source, line.direction)),
        lambda line: bool(lost_numbers(*line)),
    ),
    Measure("quotes unbalanced", always, lambda line: has_unbalanced_quotes(line.output)),
    Measure(
        "quotes added or lost",
        always,
        lambda line: double_quotes(line.output) != double_quotes(line.source),
    ),
    Measure("loop", always, lambda line: has_loop(line.source, line.output)),
    Measure("U+FFFD", always, lambda line: "\ufffd" in line.output),
    Measure("empty", lambda line: bool(line.source.strip()), lambda line: not line.output.strip()),
    Measure("length outlier", lambda line: len(line.source) >= LEAST, is_outlier),
    Measure(
        "capitals lost",
        lambda line: len(line.source) >= LEAST and is_capital(line.source),
        lambda line: not is_capital(line.output),
    ),
]


def measured(work: str, system: str, lines: Sequence[Line]) -> list[Row]:
    """One row per measure. A measure that applies to no line has none."""
    rows = []
    for measure in MEASURES:
        own = [line for line in lines if measure.applies(line)]
        if own:
            share = 100 * sum(map(measure.has_fault, own)) / len(own)
            unit = f"% of {len(own):,} lines"
            rows.append(Row.once(f"{work}, {measure.name}", system, share, unit))
    return rows


def read(file: Path) -> list[str]:
    # Only a line feed ends a line: `splitlines` would also split at other characters.
    return file.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def directions_of(prefix: Path) -> list[str]:
    """The directions whose source and reference exist."""
    return [
        direction
        for direction in DIRECTIONS
        if all(Path(f"{prefix}.{name}").exists() for name in direction.split("-"))
    ]


def compared(prefix: Path, direction: str, translate: Translate) -> list[Row]:
    """The rows of the translations, of the reference, and for quotation marks of the source."""
    source, reference = (read(Path(f"{prefix}.{name}")) for name in direction.split("-"))
    work = f"{prefix.parent.name}/{prefix.name}, {direction}"
    rows = []
    for system, texts in (("translation", translate(source)), ("reference", reference)):
        lines = [Line(*pair, direction) for pair in zip(source, texts, strict=True)]
        rows += measured(work, system, lines)
    lines = [Line(text, text, direction) for text in source]
    return rows + [row for row in measured(work, "source", lines) if "unbalanced" in row.work]


def by_model(name: str, engine: EngineName, source: Sequence[str]) -> list[str]:
    model = transept.load(name, engine=engine)
    return [one.text for one in model.translate(source, too_long="split")]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("prefix", type=Path, nargs="+", help="files without .en, .de and .fr")
    parser.add_argument("--model", action="append", default=[], help="DIRECTION=MODEL")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--direction", choices=DIRECTIONS, help="Default: all that have files")
    parser.add_argument("--output", type=Path, help="translations to measure, one per line")
    arguments = parser.parse_args()
    if arguments.output and (not arguments.direction or len(arguments.prefix) > 1):
        parser.error("--output requires one PREFIX and --direction")
    models = dict(name.split("=", 1) for name in arguments.model)
    rows = []
    for prefix in arguments.prefix:
        for direction in [arguments.direction] if arguments.direction else directions_of(prefix):
            translate: Translate = (
                (lambda _: read(arguments.output))
                if arguments.output
                else partial(by_model, models.get(direction, direction), arguments.engine)
            )
            rows += compared(prefix, direction, translate)
    print_across(rows)
    if arguments.json is not None:
        write_record(arguments.json.stem, rows, [], ["torch"], arguments.json)


if __name__ == "__main__":
    main()
