"""Table 3: the record of the rows that were trained, and its table.

    transept recipe run table3 --rows configs/table3/[A-E]*.toml --seeds 3 --data DATA --work WORK
    transept recipe run table3 --rows configs/table3/big.toml --seeds 1 --data DATA --work WORK
    python benchmarks/table3.py WORK/sweep.json [...]
    python benchmarks/tables.py

The third command adds the results of one or several sweeps to benchmarks/results/table3.json. Each
sweep may contain only some rows and seeds. Of a row and seed that was trained twice, the first
result is kept, so that nobody chooses the better one.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from transept.apps.recipes.table import (
    COLUMNS,
    PAPER,
    Mean,
    RowResult,
    RowSummary,
    agreement,
    summarize,
)
from transept.model.config import LABEL_SMOOTHING, PAPER_PARAMETERS, PRESETS

RECORD = Path(__file__).resolve().parent / "results" / "table3.json"
ROWS = list(PAPER)
LARGE = {
    "A-h1": "one head instead of eight",
    "C-N2": "two layers instead of six",
    "C-d256": "d_model of 256 instead of 512",
    "D-drop0": "no dropout",
}
"""The rows that are much worse than base in the paper."""
NAMES = {
    "N": "n_layers", "d_model": "d_model", "d_ff": "d_ff", "h": "n_heads", "d_k": "d_k",
    "d_v": "d_v", "P_drop": "dropout",
}  # fmt: skip
"""The names of values in the paper, and their keys."""
FIGURE = (
    "![Perplexity of each row relative to base, trained here and in the paper.]"
    '(figures/table-3.svg "Perplexity relative to that of base, with 95 % intervals. Left is '
    "better. Ratios are shown because the two vocabularies differ, and with them the perplexities "
    'per token.")'
)
JOINED = "\u00a0"
"""A space at which lines do not break."""
Record = Mapping[str, Any]


# --- the record ------------------------------------------------------------------------------


def merged(sweeps: Sequence[Record]) -> Record:
    """The results of several sweeps in one, in the order of the paper."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for sweep in sweeps:
        for key in ("recipe", "overrides"):
            if sweep[key] != sweeps[0][key]:
                raise ValueError(f"{key}: {sweeps[0][key]} and {sweep[key]} cannot be compared")
        for one in sweep["results"]:
            if one["row"] not in ROWS:
                raise ValueError(f"{one['row']}: is not a row of Table 3; remove it")
            found.setdefault((ROWS.index(one["row"]), one["seed"]), one)
    for key in ("corpora", "steps"):
        if len(values := {one[key] for one in found.values()}) > 1:
            raise ValueError(f"{key}: rows with {sorted(values)} cannot be compared")
    if not any(one["row"] == "base" for one in found.values()):
        raise ValueError("base: is not trained, but the other rows are compared with it")
    return {**sweeps[0], "results": [found[key] for key in sorted(found)]}


# --- the page --------------------------------------------------------------------------------


def summaries(record: Record) -> dict[str, RowSummary]:
    """The rows that are trained, by name, in the order of the paper."""
    found = summarize([RowResult(**one) for one in record["results"]])
    return {row.row: row for row in found}


def varied(row: str) -> dict[str, str]:
    """The values of a row that differ from those of base, by the paper's name. All of base's."""
    base = {} if row == "base" else _values("base")
    return {name: value for name, value in _values(row).items() if base.get(name) != value}


def _values(row: str) -> dict[str, str]:
    found = {name: f"{getattr(PRESETS[row], key):g}" for name, key in NAMES.items()}
    return {**found, "ε_ls": f"{LABEL_SMOOTHING[row]:g}"}


def label(row: str) -> str:
    """The value that a row is named after, such as `h = 1`."""
    if not (changed := varied(row)):
        return "learned positions"
    return row if row == "big" else " = ".join(next(iter(changed.items())))


def page(record: Record) -> str:
    """The part of the page that depends on the record."""
    rows = summaries(record)
    lines = [*_table(rows), "", *_totals(record, rows)]
    if large := [name for name in LARGE if name in rows]:
        lines += ["", *_differences(rows, large)]
    return "\n".join([*lines, "", FIGURE]) + "\n"


def _table(rows: Mapping[str, RowSummary]) -> Iterator[str]:
    yield "| | changes | PPL | paper | BLEU | paper | 10⁶ parameters | paper | seeds |"
    yield f"|---|{'---|' * 8}"
    for name in ROWS:
        ours = ["not run", "", "", ""]
        if row := rows.get(name):
            size = f"{row.parameters / 1e6:.1f}"
            ours = [str(row.perplexity), str(row.bleu), size, str(row.n_seeds)]
        paper = (f"{PAPER[name][0]:.2f}", f"{PAPER[name][1]:.1f}", str(PAPER_PARAMETERS[name]))
        scores = [cell for both in zip(ours, paper, strict=False) for cell in both]
        yield _line(name.partition("-")[0], _changes(name), *scores, ours[-1])


def _changes(row: str) -> str:
    changed = varied(row)
    if changed.get("d_k") == changed.get("d_v", ""):
        changed = {"d_k = d_v" if name == "d_k" else name: changed[name] for name in changed}
        del changed["d_v"]
    said = ", ".join(f"{name} = {value}".replace(" ", JOINED) for name, value in changed.items())
    return said or label(row)


def _line(*cells: str) -> str:
    """A row of a table. Numbers and their margins are not separated."""
    return f"| {' | '.join(cell.replace(' ± ', f'{JOINED}±{JOINED}') for cell in cells)} |"


def _totals(record: Record, rows: Mapping[str, RowSummary]) -> Iterator[str]:
    """The agreement with the paper, and the cost."""
    known = [*rows.values()]
    rho, rho_bleu = (agreement(known, column) for column in COLUMNS)
    if rho is not None and rho_bleu is not None:
        values = f"{rho:.2f} for perplexity and {rho_bleu:.2f} for BLEU".replace("-", "−")
        yield f"Rank correlation (Spearman's ρ) with the paper, {len(known)} rows: **{values}**.\n"
    results = record["results"]
    trained, scored = (
        sum(one[key] for one in results) / 60 for key in ("seconds", "evaluation_seconds")
    )
    devices = sorted({one["device"].partition(": ")[2] for one in results})
    commits = sorted({str(one["commit"]) for one in results})
    yield (
        f"{len(results)} models of {results[0]['steps']:,} steps took {trained + scored:.0f} "
        f"minutes on {', '.join(devices)}: {trained:.0f} of training, {scored:.0f} of decoding and "
        f"scoring. Commits: {', '.join(commits)}."
    )


def _differences(rows: Mapping[str, RowSummary], names: Sequence[str]) -> Iterator[str]:
    """The differences that are large in the paper, and whether they are kept."""
    verdicts = {name: verdict(rows[name].perplexity - rows["base"].perplexity) for name in names}
    kept = [*verdicts.values()].count("kept")
    yield (
        f"The paper's large differences from base, by perplexity: **{kept} of {len(names)} kept**."
        " A difference is kept if its 95 % interval is above zero, not kept if it is below zero, "
        "and undecided if it contains zero or if no row has two seeds."
    )
    yield ""
    yield "| | PPL | paper | BLEU | paper | |"
    yield "|---|---|---|---|---|---|"
    for name in names:
        cells = []
        for number, column in enumerate(COLUMNS):
            ours = getattr(rows[name], column) - getattr(rows["base"], column)
            cells += [
                _signed(str(ours)),
                f"{PAPER[name][number] - PAPER['base'][number]:+.{2 - number}f}",
            ]
        cells = [cell.replace("-", "−") for cell in cells]
        yield _line(LARGE[name], *cells, verdicts[name])


def _signed(number: str) -> str:
    return number if number.startswith("-") else f"+{number}"


def verdict(difference: Mean) -> str:
    """Whether a row is worse than base, as in the paper."""
    if difference.margin is None or abs(difference.value) <= difference.margin:
        return "undecided"
    return "kept" if difference.value > 0 else "**not kept**"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sweeps", nargs="+", type=Path, metavar="SWEEP.json")
    parser.add_argument("--json", type=Path, default=RECORD, help="the record")
    given = parser.parse_args()
    paths = [path for path in (given.json, *given.sweeps) if path != given.json or path.exists()]
    try:
        record = merged([json.loads(path.read_text(encoding="utf-8")) for path in paths])
    except ValueError as error:
        sys.exit(f"{', '.join(map(str, paths))}: {error}")
    given.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
