"""Tables and figures of docs/, generated from the records in benchmarks/results.

    python benchmarks/tables.py          write them
    python benchmarks/tables.py --check  report whether they agree with the records

In a page, a table is between `<!-- NAME -->` and `<!-- /NAME -->`. `<!-- NAME across -->` has one
column per system, which suits single measurements. `<!-- NAME rows -->` has the rows listed in
ROWS, without goals. `<!-- headlines -->` has one row per benchmark, `<!-- expected -->` estimates
for other CPUs, `<!-- table1_… -->` the exponents of Table 1, `<!-- table2_… -->` the results and
costs of Table 2, `<!-- table3 -->` the rows of Table 3 (table3.py).
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil, log
from pathlib import Path
from typing import Any

import table3
from figures import (
    BASELINE,
    CHARTS,
    CPU_FLOPS,
    GPU_FLOPS,
    TIME,
    chart,
    differences_from_base,
    growth,
    layer_times,
    parsing_length,
    progress,
    translation_length,
)

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs"
PAGES = [
    DOCS / "parsing.md",
    DOCS / "performance.md",
    DOCS / "tables.md",
    DOCS / "internals" / "performance-log.md",
    DOCS / "internals" / "parsing-log.md",
]
FIGURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "parsing-length": ("parsing", parsing_length),
    "length-cpu": ("by_length_cpu", translation_length),
    "table-1-cpu": ("table1_cpu", layer_times),
    "table-1-gpu": ("table1_cuda", layer_times),
    **{
        f"growth-{device}": (f"growth_{device}", growth)
        for device in ("cpu", "cuda")
        if (RESULTS / f"growth_{device}.json").exists()
    },
    **{
        f"table-2-{machine}-{name}": (f"table2_{device}", partial(progress, cost))
        for machine, device, flops in (("cpu", "cpu", CPU_FLOPS), ("gpu", "cuda", GPU_FLOPS))
        for name, cost in (("time", TIME), ("flops", flops))
        if (RESULTS / f"table2_{device}.json").exists()
    },
    **({"table-3": ("table3", differences_from_base)} if table3.RECORD.exists() else {}),
    **{
        name: (made.record, partial(chart, name))
        for name, made in CHARTS.items()
        if (RESULTS / f"{made.record}.json").exists()
    },
}
"""The record and the function of each file docs/figures/NAME.svg."""
Rows = list[dict[str, Any]]
Layout = Callable[[Rows], list[str]]
TIMES = ("s", "CPU-s")
"""Units of which less is better."""
HEADLINES = {
    "[training](#training-on-a-gpu) base, one H200": (
        "gpu_training", "base", "target tokens/s", "transept", "MarianMT bf16"
    ),
    "training big, one H200": (
        "gpu_training", "big", "target tokens/s", "transept", "MarianMT bf16"
    ),
    "[translating](#decoding-on-a-gpu) newstest2014, beam 4, one H200": (
        "gpu_decoding", "3,003 sentences, beam 4", "s", "transept fp16", "HF MarianMT fp16"
    ),
    "translating 64 sentences with base, beam 4, one H200": (
        "gpu_ctranslate2", "base, beam 4, 64 sentences", "output tokens/s", "transept fp16",
        "CTranslate2 float16",
    ),
    "[training](#training-on-a-cpu) base, one core": (
        "cpu_training", "train base", "target tokens/CPU-s", "transept", "HF MarianMT"
    ),
    "[decoding](#decoding-on-a-cpu) 32 sentences with base, beam 4, one core": (
        "cpu_decoding", "base, beam 4, batch 32", "output tokens/CPU-s", "transept",
        "CTranslate2 float32",
    ),
    "translating Tatoeba's test set with the bundled en-de, beam 4, one core": (
        "cpu_test_set", "beam 4", "CPU-s", "transept", "CTranslate2 float32"
    ),
    "[preparing](#preparing-a-corpus) 500,000 pairs, by CPU time": (
        "data_prepare", "500,000 pairs", "pairs/CPU-s", "transept data prepare, 2 cores",
        "sentencepiece, one thread",
    ),
}  # fmt: skip
"""The most important results: the benchmark, its work and unit, our system and another."""
PRODUCT = "small, projection, 128 rows"
"""The product of `cpu_products` that stands for the speed of a CPU."""
CPUS = (50, 100, 200)
"""GFLOP/s of CPUs for which speeds are estimated."""
MEASURED = {"ARM (Neoverse N1)": "", "Intel Xeon, 2.5 GHz": "_x86", "AMD EPYC (Zen 5)": "_amd"}
"""CPUs with records, and the ends of their names."""
EXPECTED = {
    "sentences, bundled en-de, beam 4": ("cpu_test_set", "beam 4", "CPU-s", "transept"),
    "tokens, training small": ("cpu_training", "train small", "target tokens/CPU-s", "transept"),
    "tokens, training base": ("cpu_training", "train base", "target tokens/CPU-s", "transept"),
}
"""The records of speeds on one core: benchmark, work, unit and system."""
SENTENCES = {"cpu_test_set": 2000, "cpu_test_set_x86": 500, "cpu_test_set_amd": 500}
"""The sentences of each test set whose time is recorded."""
ROWS = {
    "parsing": {"test": "F1", "test, at most 40 words": "F1", "training": "minutes"},
    "table4": {"test": "F1", "test, without the constraint": "F1", "training": "minutes"},
}
"""The work and unit of each column of a short table."""
WORDS = {
    r"\b(HF )?MarianMT\b": "Hugging Face MarianMT",
    r"\btimes HF\b": "times Hugging Face MarianMT",
    r"\bpeer\b": "baseline",
    r"\bshipped\b": "bundled",
    r"\btold to come back \(429\)": "rejected (429)",
    r"\bthat do not speak\b": "without communication",
    r"\btranslate 1 sentences\b": "translate 1 sentence",
    r"\bclients that leave\b": "clients that disconnect",
    r"% no trees\b": "% malformed",
    r"\bplanned a second\b": "planned per second",
    r"\bbytes a pair\b": "bytes per pair",
    r"\bMB that memory rose by\b": "memory growth, MB",
}
"""Replacements for names in the records."""
MARKERS = re.compile(r"(<!-- (\w+)( across| rows)? -->\n).*?(<!-- /\2 -->)", re.DOTALL)


def read(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return record


def table(name: str, layout: Layout) -> str:
    """The rows and goals of one benchmark, and the machine."""
    record = read(name)
    lines = layout(record["rows"])
    if record["goals"]:
        lines += ["", "| goal | value | target | |", "|---|---|---|---|"]
    for goal in record["goals"]:
        met = "met" if goal["met"] else "**missed**"
        value, target = _number(goal["value"]), _number(goal["target"])
        lines.append(f"| {goal['goal']} | {value} | {target} | {met} |")
    return "\n".join([*lines, "", origin(record)]) + "\n"


def origin(record: dict[str, Any]) -> str:
    """The command, the commit, the machine and the versions of a record."""
    found = {key: value for key, value in record["versions"].items() if value != "absent"}
    versions = ", ".join(f"{key} {value}" for key, value in found.items())
    # The paths of files on the measuring machine are of no use to readers.
    command = re.sub(r"--json /\S+", "--json FILE", record["command"])
    command = re.sub(r"(?<= )/\S*/", "", command)
    return f"`{command}` at {record['commit']}: {record['machine']}; {versions}."


def worded(text: str) -> str:
    """A table with current names of systems. The commands below tables stay as recorded."""
    lines = text.splitlines(keepends=True)
    return "".join(
        re.sub("|".join(WORDS), _word, line) if line.startswith("|") else line for line in lines
    )


def _word(found: re.Match[str]) -> str:
    return next(word for pattern, word in WORDS.items() if re.fullmatch(pattern, found[0]))


def short(name: str) -> str:
    """A table with one row per system and one column per quantity of ROWS."""
    chosen = ROWS[name]
    found: dict[str, dict[str, str]] = {}
    for row in read(name)["rows"]:
        if chosen.get(row["work"]) == row["unit"] and row["system"] != BASELINE:
            found.setdefault(row["system"], {})[row["work"]] = f"{row['value']:.1f}"
    heads = " | ".join(f"{work}, {unit}" for work, unit in chosen.items())
    lines = [f"| system | {heads} |", f"|---|{'---|' * len(chosen)}"]
    for system, values in found.items():
        cells = " | ".join(values.get(work, "") for work in chosen)
        lines.append(f"| {system} | {cells} |")
    return "\n".join(lines) + "\n"


def down(rows: Rows) -> list[str]:
    """One line per row."""
    lines = ["| work | system | value | quartiles | unit |", "|---|---|---|---|---|"]
    for row in rows:
        value, low, high = (_number(row[key]) for key in ("value", "low", "high"))
        spread = "" if low == high else f"{low} to {high}"
        lines.append(f"| {row['work']} | {row['system']} | {value} | {spread} | {row['unit']} |")
    return lines


def across(rows: Rows) -> list[str]:
    """One column per system."""
    systems = list(dict.fromkeys(row["system"] for row in rows))
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        found.setdefault((row["work"], row["unit"]), {})[row["system"]] = _number(row["value"])
    lines = [f"| work | unit | {' | '.join(systems)} |", f"|---|---|{'---|' * len(systems)}"]
    for (work, unit), values in found.items():
        cells = " | ".join(values.get(system, "") for system in systems)
        lines.append(f"| {work} | {unit} | {cells} |")
    return lines


def headlines() -> str:
    """The table at the start of the page."""
    lines = ["| | unit | transept | | times as fast |", "|---|---|---|---|---|"]
    for what, (name, work, unit, ours, other) in HEADLINES.items():
        found = {
            row["system"]: row["value"]
            for row in read(name)["rows"]
            if (row["work"], row["unit"]) == (work, unit)
        }
        times = found[other] / found[ours] if unit in TIMES else found[ours] / found[other]
        theirs = f"{other.partition(',')[0]}: {_number(found[other])}"
        lines.append(f"| {what} | {unit} | {_number(found[ours])} | {theirs} | {times:.1f} |")
    return "\n".join(lines) + "\n"


def expected() -> str:
    """Measured speeds of one core, and estimates in proportion to GFLOP/s."""
    peaks = [_peak(f"cpu_products{end}") for end in MEASURED.values()]
    measured = (f"{cpu}, {peak:.0f}" for cpu, peak in zip(MEASURED, peaks, strict=True))
    heads = [*measured, *(f"{cpu}, estimate" for cpu in CPUS)]
    lines = [f"| per second | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for what, (name, *row) in EXPECTED.items():
        rates = [_rate(f"{name}{end}", *row) for end in MEASURED.values()]
        ratios = [rate / peak for rate, peak in zip(rates, peaks, strict=True)]
        ends = (min(ratios), max(ratios))
        estimates = (
            " to ".join(_number(float(f"{ratio * cpu:.2g}")) for ratio in ends) for cpu in CPUS
        )
        lines.append(f"| {what} | {' | '.join([*map(_number, rates), *estimates])} |")
    return "\n".join(lines) + "\n"


def _peak(products: str) -> float:
    """GFLOP/s in single precision, which stand for the speed of a CPU."""
    rates = (
        float(row["value"])
        for row in read(products)["rows"]
        if row["work"] == PRODUCT and row["system"].startswith("float32")
    )
    return max(rates)


def _rate(name: str, *which: str) -> float:
    """Sentences or tokens per second."""
    (value,) = (
        row["value"]
        for row in read(name)["rows"]
        if (row["work"], row["unit"], row["system"]) == which
    )
    return float(SENTENCES[name] / value if name in SENTENCES else value)


def exponents(name: str) -> str:
    """The exponents of n and d of Table 1: predicted, counted, and fitted to the times."""
    found: dict[str, dict[str, str]] = {}
    for row in read(name)["rows"]:
        if fitted := re.fullmatch(r"exponent of (\w), (.+)", row["work"]):
            value = f"{fitted[1]}<sup>{_number(round(row['value'], 2))}</sup>"
            cells = found.setdefault(row["system"], {})
            cells[fitted[2]] = value if fitted[1] == "n" else f"{cells[fitted[2]]} · {value}"
    heads = list(next(iter(found.values())))
    lines = [f"| layer | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    lines += [f"| {layer} | {' | '.join(cells.values())} |" for layer, cells in found.items()]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """Four significant digits, without exponents."""
    if abs(value) >= 1000:
        digits = len(str(int(abs(value))))
        return f"{round(value, 4 - digits):,.0f}"
    return f"{value:.4g}"


def families(name: str) -> str:
    """Table 2: the results of each kind of network at the end of its training, and their cost.

    The last columns have the cost of the perplexity that every network reached.
    """
    record = read(name)
    found: dict[str, dict[str, float]] = {}
    for row in record["rows"]:
        if row["work"] in ("network", "end"):
            found.setdefault(row["system"], {})[row["unit"]] = row["value"]
    # Without BLEU, the training was interrupted.
    found = {system: values for system, values in found.items() if "BLEU" in values}
    # Rounded up, so that every network reached it.
    goal = ceil(10 * max(values["perplexity"] for values in found.values())) / 10
    heads = (
        "parameters | BLEU | perplexity | steps | minutes | FLOPs | target tokens/s | "
        f"minutes to perplexity {goal} | FLOPs to perplexity {goal}"
    )
    lines = [f"| network | {heads} |", f"|---|{'---|' * 9}"]
    for system, values in found.items():
        cells = (
            f"{values['M parameters']:.1f} M", f"{values['BLEU']:.1f}",
            f"{values['perplexity']:.2f}", f"{values['steps']:,.0f}", f"{values['s'] / 60:.1f}",
            _power(values["FLOPs"]), _number(values["target tokens/s"]),
            f"{cost_of(goal, system, 's', record['rows']) / 60:.1f}",
            _power(cost_of(goal, system, "FLOPs", record["rows"])),
        )  # fmt: skip
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", origin(record)]) + "\n"


def cost_of(goal: float, system: str, unit: str, rows: Rows) -> float:
    """The cost at which a network of Table 2 reached a perplexity.

    Between two validations, the logarithm of the perplexity is interpolated. Before the first one
    nothing is known, so its cost is an upper bound.
    """
    points: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["system"] == system and row["work"].startswith("step "):
            points.setdefault(row["work"], {})[row["unit"]] = row["value"]
    before: tuple[float, float] | None = None
    for point in points.values():
        cost, perplexity = point[unit], point["perplexity"]
        if perplexity <= goal:
            if before is None:
                return cost
            share = log(before[1] / goal) / log(before[1] / perplexity)
            return before[0] + share * (cost - before[0])
        before = cost, perplexity
    raise ValueError(f"{system} did not reach perplexity {goal}")


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.1e}".split("e+")
    return f"{mantissa} · 10<sup>{int(exponent)}</sup>"


def renewed() -> Iterator[tuple[Path, str]]:
    """Every page with updated tables, and every figure."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        yield page, MARKERS.sub(_filled, text)
    for figure, (name, draw) in FIGURES.items():
        yield DOCS / "figures" / f"{figure}.svg", draw(read(name))


def _filled(found: re.Match[str]) -> str:
    start, name, layout, end = found.groups()
    if name == "headlines":
        return start + worded(headlines()) + end
    if name == "expected":
        return start + expected() + end
    if name.startswith("table1"):
        return start + exponents(name) + end
    if name.startswith("table2"):
        return start + families(name) + end
    if name == "table3":
        trained = (RESULTS / "table3.json").exists()
        return start + (table3.page(read(name)) if trained else "No row is trained yet.\n") + end
    if layout == " rows":
        return start + short(name) + end
    return start + worded(table(name, across if layout else down)) + end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a file would change")
    check = parser.parse_args().check
    for path, new in renewed():
        if not check:
            path.write_text(new, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != new:
            sys.exit(f"{path} differs from benchmarks/results; run {Path(__file__).name}")


if __name__ == "__main__":
    main()
