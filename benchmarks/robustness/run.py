"""How translations treat addresses, emoji, placeholders, numbers and other text that people have.

    python benchmarks/robustness/run.py [--model en-de=DIR] [--engine native] [--failures]

All cases of cases.toml are translated in one call per direction, and each output is checked. With
`--server URL`, or `--server` for one of this benchmark, they are also sent to a server, as text and
as HTML.
"""

import argparse
import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from measuring import Row, parser_of, print_across, write_record
from robustness.cases import DIRECTIONS, Case, checked, checked_html, in_html, load
from served import serving

import transept
from transept.api.config import EngineName

AT_ONCE = 40
"""Texts per request."""


@dataclass(frozen=True)
class Result:
    """The output for a case by one way of translating, and whether each check passed."""

    case: Case
    way: str
    output: str
    checks: dict[str, bool]

    @property
    def system(self) -> str:
        return f"{self.case.direction}{self.way}"

    @property
    def passed(self) -> bool:
        return all(self.checks.values())


def by_python(cases: list[Case], model: str, engine: EngineName) -> Iterator[Result]:
    loaded = transept.load(model, device="cpu", engine=engine)
    found = loaded.translate([case.source for case in cases], too_long="split")
    for case, one in zip(cases, found, strict=True):
        yield Result(case, "", one.text, checked(case, one.text))


def by_server(cases: list[Case], url: str) -> Iterator[Result]:
    """The results of a server, first for plain text and then for HTML."""
    for case, text in zip(cases, posted(url, cases, "text", sources(cases)), strict=True):
        yield Result(case, ", server", text, checked(case, text))
    pairs = list(in_html(cases))
    received = posted(url, cases, "html", [text for _, text in pairs])
    for (case, sent), answer in zip(pairs, received, strict=True):
        yield Result(case, ", HTML", *checked_html(case, sent, answer))


def sources(cases: list[Case]) -> list[str]:
    return [case.source for case in cases]


def posted(url: str, cases: list[Case], form: str, texts: list[str]) -> list[str]:
    source, target = cases[0].direction.split("-")
    answers: list[str] = []
    for at in range(0, len(texts), AT_ONCE):
        some = texts[at : at + AT_ONCE]
        body = {"q": some, "source": source, "target": target, "format": form}
        request = urllib.request.Request(
            f"{url}/translate", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            answers += json.load(response)["translatedText"]
    return answers


@contextmanager
def server(url: str, models: dict[str, str]) -> Iterator[str]:
    """The given server, or one that runs meanwhile."""
    if url:
        yield url
        return
    options = [word for pair, name in models.items() for word in ("--model", f"{pair}={name}")]
    with serving(*options, "--device", "cpu") as (_, port, _):
        yield f"http://127.0.0.1:{port}"


def rows_of(results: list[Result]) -> list[Row]:
    """The share of cases that passed per class, in all, and the share of each check."""
    rows = []
    for system in dict.fromkeys(result.system for result in results):
        own = [result for result in results if result.system == system]
        shares: dict[tuple[str, str], list[bool]] = {("all", "% of cases"): []}
        for result in own:
            shares["all", "% of cases"].append(result.passed)
            shares.setdefault((result.case.group, "% of cases"), []).append(result.passed)
        for result in own:
            for name, passed in result.checks.items():
                shares.setdefault((name, "% of checks"), []).append(passed)
        for (work, unit), passes in shares.items():
            rows.append(Row.once(work, system, 100 * sum(passes) / len(passes), unit))
    return rows


def print_failures(results: list[Result]) -> None:
    for result in results:
        if not result.passed:
            failed = ", ".join(name for name, passed in result.checks.items() if not passed)
            print(f"\n{result.case.id}{result.way}: {failed}")
            print(f"  {result.case.source!r}\n  {result.output!r}")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--model", action="append", default=[], help="DIRECTION=MODEL")
    parser.add_argument("--engine", default="auto", help="engine of the Python API")
    parser.add_argument("--server", nargs="?", const="", help="also use this server, or a new one")
    parser.add_argument("--failures", action="store_true", help="print the cases that failed")
    arguments = parser.parse_args()
    models = dict(name.split("=", 1) for name in arguments.model) or {
        direction: direction for direction in DIRECTIONS
    }
    results = run(models, arguments)
    rows = rows_of(results)
    print_across(rows)
    if arguments.failures:
        print_failures(results)
    if arguments.json is not None:
        write_record(arguments.json.stem, rows, [], ["torch"], arguments.json)


def run(models: dict[str, str], arguments: argparse.Namespace) -> list[Result]:
    cases = {
        direction: [case for case in load() if case.direction == direction] for direction in models
    }
    results = [
        result
        for direction, model in models.items()
        for result in by_python(cases[direction], model, arguments.engine)
    ]
    if arguments.server is not None:
        with server(arguments.server, models) as url:
            results += [result for some in cases.values() for result in by_server(some, url)]
    return results


if __name__ == "__main__":
    main()
