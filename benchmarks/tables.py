"""The tables of docs/performance.md, made from benchmarks/results: what is read was measured.

    python benchmarks/tables.py          write them anew
    python benchmarks/tables.py --check  say whether they agree

In the page, a table stands between `<!-- NAME -->` and `<!-- /NAME -->`.
"""

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance.md"
PLACE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def table(name: str) -> str:
    """The rows and goals of one benchmark, and what it was measured on."""
    record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    lines = ["| work | system | value | quartiles | unit |", "|---|---|---|---|---|"]
    for row in record["rows"]:
        value, low, high = (_number(row[key]) for key in ("value", "low", "high"))
        spread = "" if low == high else f"{low} to {high}"
        lines.append(f"| {row['work']} | {row['system']} | {value} | {spread} | {row['unit']} |")
    lines += ["", "| goal | value | target | |", "|---|---|---|---|"]
    for goal in record["goals"]:
        met = "met" if goal["met"] else "**missed**"
        value, target = _number(goal["value"]), _number(goal["target"])
        lines.append(f"| {goal['goal']} | {value} | {target} | {met} |")
    versions = ", ".join(f"{key} {value}" for key, value in record["versions"].items())
    lines += ["", f"`{record['command']}` at {record['commit']}: {record['machine']}; {versions}."]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """Four digits that count, and no exponents."""
    if abs(value) >= 1000:
        digits = len(str(int(abs(value))))
        return f"{round(value, 4 - digits):,.0f}"
    return f"{value:.4g}"


def renewed(page: str) -> str:
    """The page with every table made anew."""
    return PLACE.sub(lambda found: found[1] + table(found[2]) + found[3], page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it would")
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    new = renewed(page)
    if check and new != page:
        sys.exit(f"{PAGE} does not say what benchmarks/results does: run {Path(__file__).name}")
    if not check:
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
