"""The table of docs/internals/reliability.md, made from the recorded score of the long form.

    python -m tests.faults --json tests/faults/score.json    make the score
    python -m tests.faults.page                              and the table

In the page, the table stands between `<!-- score -->` and `<!-- /score -->`.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "internals" / "reliability.md"
SCORE = Path(__file__).with_name("score.json")
PLACE = re.compile(r"(<!-- score -->\n).*?(<!-- /score -->)", re.DOTALL)


def table(record: dict[str, Any]) -> str:
    """A line for each kind of fault, and what it was measured on."""
    lines = ["| what happened | tried | survived | what that means |", "|---|--:|--:|---|"]
    for tally in record["faults"]:
        survived = f"skipped: {tally['skipped']}" if tally["skipped"] else f"{tally['survived']:,}"
        lines.append(f"| {tally['does']} | {tally['tried']:,} | {survived} | {tally['promise']} |")
    tried, survived = (sum(t[key] for t in record["faults"]) for key in ("tried", "survived"))
    lines.append(f"| **all** | **{tried:,}** | **{survived:,}** | |")
    versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    minutes = sum(tally["seconds"] for tally in record["faults"]) / 60
    lines += [
        "",
        f"`make faults` at {record['commit']}, seed {record['seed']}, in {minutes:.0f} minutes: "
        f"{record['machine']}; {versions}.",
    ]
    return "\n".join(lines) + "\n"


def renewed(page: str) -> str:
    """The page with its table made anew."""
    record = json.loads(SCORE.read_text(encoding="utf-8"))
    return PLACE.sub(lambda found: found[1] + table(record) + found[2], page)


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
