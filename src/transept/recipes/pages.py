"""The page of results, from records alone: what is read was measured. No torch here."""

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from transept.errors import DataError
from transept.recipes.figure import draw

COMMAND: Final = "transept recipe report"
SPLIT: Final = "tokenised BLEU, compounds split"
"""The paper's convention."""

Record = Mapping[str, Any]


class Published(NamedTuple):
    """What the paper says of a system."""

    bleu: float
    """On newstest2014, Table 2."""
    flops: float
    """Of its training, Table 2."""
    dev: tuple[float, float] | None
    """BLEU and perplexity on newstest2013, Table 3."""


PAPER: Final = {
    "en-de base": Published(27.3, 3.3e18, (25.8, 4.92)),
    "en-de big": Published(28.4, 2.3e19, (26.4, 4.33)),
    "en-fr base": Published(38.1, 3.3e18, None),
    "en-fr big": Published(41.8, 2.3e19, None),
}


@dataclass(frozen=True, slots=True)
class Collection:
    """The runs and comparisons of a directory, by the names of their files."""

    directory: Path
    runs: Mapping[str, Record]
    comparisons: Mapping[str, Record]

    @classmethod
    def read(cls, directory: Path) -> "Collection":
        """Every JSON file of a directory."""
        runs: dict[str, Record] = {}
        comparisons: dict[str, Record] = {}
        for path in sorted(directory.glob("*.json"), key=lambda path: path.stem):
            try:
                record = json.loads(path.read_bytes())
                {"run": runs, "comparison": comparisons}[record["kind"]][path.stem] = record
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise DataError(f"{path}: is no record of a recipe ({error})") from error
        if not runs:
            raise DataError(f"{directory}: holds no record of a run; copy record.json there")
        return cls(directory, runs, comparisons)

    def translations(self, name: str) -> dict[str, Path]:
        """What a run translated, by test set: files in a folder of its name, if it has one.

        Only what was scored passes: its sha256 is the record's.
        """
        run = self.runs[name]
        language = run["recipe"]["target_language"]
        kept: dict[str, Path] = {}
        for test, scored in run["stages"]["score"]["inputs"]["hypotheses"].items():
            path = self.directory / name / f"{test}.{language}.xz"
            if not path.exists():
                continue
            if _sha256_inside(path) != scored:
                raise DataError(
                    f"{path}: is not what {name}.json scored; take that run's hypotheses, or "
                    "remove the file"
                )
            kept[test] = path
        return kept


def _sha256_inside(path: Path) -> str | None:
    """Of what a file holds compressed; None where it is damaged."""
    try:
        return sha256(lzma.decompress(path.read_bytes())).hexdigest()
    except lzma.LZMAError:
        return None


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the page, and the file among the records that it goes to."""

    title: str
    file: str
    svg: str


def page(records: Collection) -> str:
    """The whole page."""
    parts = [
        _introduction(records),
        "\n".join(_summary(records)),
        "\n".join(_comparisons(records)) if records.comparisons else "",
        "\n".join(_curves(records)),
        "\n".join(_costs(records)),
        *(_scores(name, record) for name, record in records.runs.items()),
        "## Where the numbers come from",
        *(_origin(records, name) for name in records.runs),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def pictures(records: Collection) -> list[Picture]:
    """How training went, over time and over target tokens.

    A picture holds runs that were validated on the same tokens: −log p of others is another
    quantity, were it of the same text.
    """
    by_dev: dict[str, dict[str, Any]] = {}
    for name, run in records.runs.items():
        if run["curve"]:
            dev = run["stages"]["prepare"]["results"]["corpora"]["dev"]["hash"]
            by_dev.setdefault(dev, {})[name] = run["curve"]
    axes = {
        "wall time": ("seconds", 60.0, "minutes of training"),
        "target tokens": ("target_tokens", 1e6, "million target tokens"),
    }
    return [
        Picture(
            title=f"{', '.join(shown)}: validation over {what}",
            file=f"{next(iter(shown))}-over-{what.replace(' ', '-')}.svg",
            svg=draw(
                {name: [(p[key] / unit, p["nll"]) for p in curve] for name, curve in shown.items()},
                x_label=x_label,
                y_label="validation −log p a token",
            ),
        )
        for shown in by_dev.values()
        for what, (key, unit, x_label) in axes.items()
    ]


def _introduction(records: Collection) -> str:
    return (
        "# Results\n\n"
        f"Written by `{COMMAND}` from the records in `{records.directory.name}/`; each number is "
        "there, with the config, the commit, the seed and the hashes of the data that it comes "
        "from.\n\n"
        "Scores stand with their conventions: compare only those with the same signature. Where a "
        "run had less text or less time than the paper's, the paper's number beside it is no "
        "goal but a landmark.\n"
    )


def _curves(records: Collection) -> Iterator[str]:
    drawn = pictures(records)
    if drawn:
        yield "## How training went\n"
        yield "Runs share a picture if they were validated on the same tokens.\n"
    for picture in drawn:
        yield f"![{picture.title}]({records.directory.name}/{picture.file})\n"


# --- tables ----------------------------------------------------------------------------------


def _summary(records: Collection) -> Iterator[str]:
    """The first thing that one wants to know of each run, and what the paper has there."""
    yield "## In short\n"
    yield "| run | system | training | test | sacreBLEU | compounds split | dev BLEU | dev PPL |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, run in records.runs.items():
        tests = _tests(run)
        first = "newstest2014" if "newstest2014" in tests else next(iter(tests))
        plain, split = (_value(tests[first], which) for which in ("sacreBLEU", SPLIT))
        trained = run["stages"]["train"]["results"]
        yield (
            f"| [{name}]({records.directory.name}/{name}.json) | {run['system']} "
            f"| {_duration(trained['seconds'])}, {trained['step']:,} steps "
            f"| {first} | {plain} | {split} | {' | '.join(_dev(tests))} |"
        )
    ours = [_paper(run) for run in records.runs.values()]
    for title, paper in PAPER.items():
        if paper in ours:
            dev = " | ".join(map(str, paper.dev)) if paper.dev else " | "
            yield f"| {title} | the paper, WMT 2014 | | newstest2014 | | {paper.bleu} | {dev} |"
    yield ""


def _dev(tests: Mapping[str, Any]) -> tuple[str, str]:
    """BLEU and perplexity a token of the set that the references' perplexity is told of."""
    for report in tests.values():
        if report["perplexities"]:
            return _value(report, "sacreBLEU"), f"{report['perplexities'][0]['value']:.2f}"
    return "", ""


def _comparisons(records: Collection) -> Iterator[str]:
    yield "## Against the peer\n"
    yield (
        "Paired bootstrap; a difference is the first system's score less the second's. The records "
        "have it in the other conventions too.\n"
    )
    for name, record in records.comparisons.items():
        first, second = (_contender(records, record, place) for place in (0, 1))
        yield f"### {name}\n"
        yield f"{first}, against {second}.\n"
        yield "| test set | sacreBLEU | 95 % | p | compounds split | 95 % | p |"
        yield "|---|---|---|---|---|---|---|"
        for test, found in record["tests"].items():
            by_name = {one["convention"]["name"]: one for one in found["comparisons"]}
            cells = [_difference(by_name[which]) for which in ("sacreBLEU", SPLIT)]
            yield f"| {test} | {' | '.join(cells)} |"
        yield ""


def _contender(records: Collection, comparison: Record, place: int) -> str:
    """One side of a comparison; where the run that translated so is here, with its training."""
    scored = {test: one["hypotheses"][place] for test, one in comparison["tests"].items()}
    title = comparison["systems"][place]["system"]
    for name, run in records.runs.items():
        if scored.items() <= run["stages"]["score"]["inputs"]["hypotheses"].items():
            trained = run["stages"]["train"]["results"]
            return (
                f"{title} ([{name}]({records.directory.name}/{name}.json), {_time(trained)}, "
                f"{trained['target_tokens']:,} target tokens)"
            )
    return f"{title} ({comparison['systems'][place]['name']})"


def _difference(compared: Mapping[str, Any]) -> str:
    low, high = compared["interval"]["low"], compared["interval"]["high"]
    return f"{compared['difference']:+.2f} | {low:+.2f} to {high:+.2f} | {compared['p_value']:.3f}"


def _costs(records: Collection) -> Iterator[str]:
    yield "## What training took\n"
    yield (
        "FLOPs by the paper's method are time × devices × sustained single precision, which was "
        "measured on the device itself; counted are those of the arithmetic that real tokens "
        "need.\n"
    )
    yield (
        "| run | time | steps | target tokens | tokens/s | FLOPs, paper's method | FLOPs, counted "
        "| energy | paper's FLOPs |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, run in records.runs.items():
        trained = run["stages"]["train"]["results"]
        seconds, tokens = trained["seconds"], trained["target_tokens"]
        paper = _paper(run)
        yield (
            f"| {name} | {_duration(seconds)} | {trained['step']:,} | {tokens:,} "
            f"| {tokens / seconds:,.0f} | {_flops(trained):.2e} "
            f"| {tokens * trained['flops_per_target_token']:.2e} | {_energy(trained)} "
            f"| {f'{paper.flops:.1e}' if paper else ''} |"
        )
    yield ""


def _scores(name: str, run: Record) -> str:
    lines = [f"## {name}\n", f"{run['recipe']['title']}; {run['system']}.\n"]
    lines += ["| test set | sentences | convention | value | 95 % |", "|---|---|---|---|---|"]
    signatures: dict[str, str] = {}
    for test, report in _tests(run).items():
        for score in (*report["systems"][0]["scores"], *report["perplexities"]):
            convention, interval = score["convention"], score.get("interval")
            spread = f"{interval['low']:.2f} to {interval['high']:.2f}" if interval else ""
            signatures[convention["name"]] = convention["signature"]
            lines.append(
                f"| {test} | {report['sentences']:,} | {convention['name']} "
                f"| {score['value']:.2f} | {spread} |"
            )
    lines.append("")
    lines += [f"- {title}: `{signature}`" for title, signature in signatures.items()]
    return "\n".join(lines) + "\n"


def _origin(records: Collection, name: str) -> str:
    run = records.runs[name]
    stages = run["stages"]
    trained, prepared = stages["train"], stages["prepare"]["results"]
    by = trained["by"]
    devices = ", ".join(by["devices"])
    lines = [
        f"### {name}: origin\n",
        f"Commit {by['commit']}, source `{by['source'][:12]}`, seed {trained['inputs']['seed']}; "
        f"{devices}; torch {by['torch']}. Vocabulary `{prepared['vocabulary'][:12]}`.\n",
    ]
    for text in run["recipe"]["texts"]:
        corpus = prepared["corpora"][text["name"]]
        lines.append(
            f"- {text['name']}: {corpus['pairs']:,} pairs, `{corpus['hash'][:12]}`; "
            f"{text['licence']}"
        )
    kept = records.translations(name)
    if kept:
        files = (f"[{test}]({records.directory.name}/{name}/{kept[test].name})" for test in kept)
        lines.append(f"\nWhat was scored: {', '.join(files)}.")
    sittings = [one["by"] for one in trained["results"]["sittings"]]
    makers = [stages["prepare"]["by"], *sittings, *(stage["by"] for stage in stages.values())]
    # A corpus may have been prepared before commands were recorded.
    commands = dict.fromkeys(maker["command"] for maker in makers if "command" in maker)
    return "\n".join([*lines, "", "```text", *commands, "```"]) + "\n"


# --- of a record -----------------------------------------------------------------------------


def _tests(run: Record) -> dict[str, Any]:
    tests: dict[str, Any] = run["stages"]["score"]["results"]["tests"]
    return tests


def _value(report: Mapping[str, Any], convention: str) -> str:
    scores: Sequence[Any] = report["systems"][0]["scores"]
    return next(f"{s['value']:.2f}" for s in scores if s["convention"]["name"] == convention)


def _paper(run: Record) -> Published | None:
    """What Table 2 says of this size and these languages."""
    pair = f"{run['recipe']['source_language']}-{run['recipe']['target_language']}"
    d_model = run["recipe"]["experiment"]["model"]["d_model"]
    size = {512: "base", 1024: "big"}.get(d_model, "")
    return PAPER.get(f"{pair} {size}")


def _flops(trained: Mapping[str, Any]) -> float:
    """By the paper's method. Records without `device_seconds` are of a single device."""
    used: float = trained.get("device_seconds", trained["seconds"]) * trained["sustained_flops"]
    return used


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"


def _time(trained: Mapping[str, Any]) -> str:
    """Of training; before its clock starts, a peer may run each of its shapes once."""
    warm = trained.get("warm_seconds")
    return _duration(trained["seconds"]) + (f" after {_duration(warm)} to warm up" if warm else "")


def _energy(trained: Mapping[str, Any]) -> str:
    joules = [sitting["joules"] for sitting in trained["sittings"]]
    return "" if None in joules else f"{sum(joules) / 3.6e6:.3f} kWh"
