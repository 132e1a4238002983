"""Write the page of results and its training curves from the records of recipes.

    python docs/making/results.py
    python docs/making/results.py --compare WORK OTHER docs/results/NAME.json

The first command writes `docs/results.md` and the pictures in `docs/results/` from the JSON files
there. Such a file is the `record.json` of a work directory, or a comparison. The second command
compares two work directories on the same test sets by paired bootstrap; the directories are those
of `transept recipe run` or of `benchmarks/peer_experiment.py`. Translations in
`docs/results/NAME/TEST.LANGUAGE.xz` are linked if they are the ones that NAME.json scored.
"""

import argparse
import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

DOCS: Final = Path(__file__).resolve().parents[1]
SPLIT: Final = "tokenised BLEU, compounds split"
"""The paper's convention."""
TALLEST: Final = 1.2
"""The height of a curve's axis above the lowest value. The first steep descent is cut off."""

Record = Mapping[str, Any]


class Published(NamedTuple):
    """A system of the paper: BLEU on newstest2014 and FLOPs (Table 2), scores of dev (Table 3)."""

    bleu: float
    flops: float
    dev: str = " | "


PAPER: Final = {
    "en-de base": Published(27.3, 3.3e18, "25.8 | 4.92"),
    "en-de big": Published(28.4, 2.3e19, "26.4 | 4.33"),
    "en-fr base": Published(38.1, 3.3e18),
    "en-fr big": Published(41.8, 2.3e19),
}


@dataclass(frozen=True, slots=True)
class Collection:
    """The runs and comparisons of a directory, by the names of their files."""

    directory: Path
    runs: Mapping[str, Record]
    comparisons: Mapping[str, Record]

    @classmethod
    def read(cls, directory: Path) -> "Collection":
        """Read every JSON file of a directory."""
        paths = sorted(directory.glob("*.json"), key=lambda path: path.stem)
        records = {path.stem: json.loads(path.read_bytes()) for path in paths}
        runs, comparisons = (
            {name: record for name, record in records.items() if record["kind"] == kind}
            for kind in ("run", "comparison")
        )
        return cls(directory, runs, comparisons)

    def translations(self, name: str) -> dict[str, Path]:
        """The stored translations of a run by test set, each verified by the record's sha256."""
        run = self.runs[name]
        language = run["recipe"]["target_language"]
        kept = {}
        for test, scored in run["stages"]["score"]["inputs"]["hypotheses"].items():
            path = self.directory / name / f"{test}.{language}.xz"
            if path.exists():
                if _sha256(lzma.decompress(path.read_bytes())) != scored:
                    raise ValueError(f"{path}: is not what {name}.json scored; remove the file")
                kept[test] = path
        return kept

    def link(self, name: str) -> str:
        """A Markdown link to a run's record."""
        return f"[{name}]({self.directory.name}/{name}.json)"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- comparisons and curves ------------------------------------------------------------------


def compare(first: Path, second: Path) -> Record:
    """Compare two work directories by paired bootstrap, on the test sets that both have.

    The files must be the ones that the records scored.
    """
    from transept.apps.recipes.records import provenance
    from transept.evaluation.reading import language_of, read_aligned
    from transept.evaluation.report import System, evaluate

    works = (first, second)
    records = [json.loads((work / "record.json").read_bytes()) for work in works]
    scored = [record["stages"]["score"]["inputs"] for record in records]
    tests = {}
    for test in filter(scored[1]["references"].__contains__, scored[0]["references"]):
        assert scored[0]["references"][test] == scored[1]["references"][test], test
        name = f"{test}.{records[0]['recipe']['target_language']}"
        reference = first / "tests" / name
        hypotheses = [work / "hypotheses" / name for work in works]
        recorded = [inputs["hypotheses"][test] for inputs in scored]
        assert [_sha256(path.read_bytes()) for path in hypotheses] == recorded, hypotheses
        lines, *outputs = read_aligned([reference, *hypotheses])
        ours, theirs = (
            System(record["system"], output)
            for record, output in zip(records, outputs, strict=True)
        )
        report = evaluate(ours, lines, other=theirs, language=language_of(reference))
        tests[test] = {
            "sentences": report.sentences,
            "hypotheses": recorded,
            "comparisons": [asdict(one) for one in report.comparisons],
        }
    systems = [{"name": record["name"], "system": record["system"]} for record in records]
    return {"kind": "comparison", "systems": systems, "tests": tests, "by": provenance()}


def curves(records: Collection) -> dict[str, dict[str, Any]]:
    """The training curves of runs that were validated on the same tokens, by picture.

    A picture has the name of its first run. −log p of other tokens is another quantity.
    """
    by_dev: dict[str, dict[str, Any]] = {}
    for name, run in records.runs.items():
        if run["curve"]:
            dev = run["stages"]["prepare"]["results"]["corpora"]["dev"]["hash"]
            by_dev.setdefault(dev, {})[name] = run["curve"]
    return {f"{next(iter(shown))}.svg": shown for shown in by_dev.values()}


def digest(shown: Mapping[str, Any]) -> str:
    """The sha256 of the points of a picture, which the picture states as its description."""
    return _sha256(json.dumps(shown).encode())


def draw(shown: Mapping[str, Any], path: Path) -> None:
    """Draw training curves over time and over target tokens."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("agg")
    low = min(point["nll"] for curve in shown.values() for point in curve)
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "transept", "font.size": 9}
    with pyplot.rc_context(style):
        figure, panels = pyplot.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
        for name, curve in shown.items():
            nll = [point["nll"] for point in curve]
            panels[0].plot([point["seconds"] / 60 for point in curve], nll, label=name)
            panels[1].plot([point["target_tokens"] / 1e6 for point in curve], nll)
        panels[0].set(xlabel="minutes of training", ylabel="validation −log p per token")
        panels[1].set(xlabel="million target tokens", ylim=(low - 0.05, low + TALLEST))
        for panel in panels:
            panel.set_xlim(left=0)
            panel.grid(alpha=0.3)
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        figure.savefig(path, metadata={"Date": None, "Description": digest(shown)})
        pyplot.close(figure)


# --- the page --------------------------------------------------------------------------------


def page(records: Collection) -> str:
    """The whole page."""
    parts = [
        f"""# Results

`docs/making/results.py` writes this page from the records in `{records.directory.name}/`. They hold
each number with its config, commit and seed, and with the hashes of its data.

Compare only scores with the same signature. Where a run had less text or less time than the
paper's, the paper's score is shown for orientation.""",
        "## In short",
        _summary(records),
        *_comparisons(records),
        *_pictures(records),
        "## Training cost",
        """FLOPs by the paper's method are time × devices × sustained single precision, which was
measured on the device itself. Counted FLOPs are those of the arithmetic that real tokens need.""",
        _costs(records),
        *(part for name in records.runs for part in _scores(records, name)),
        "## Where the numbers come from",
        "Each command is the recorded one, and has the options of its commit.",
        *(part for name in records.runs for part in _origin(records, name)),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: str, rows: Iterable[str]) -> str:
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows])


def _summary(records: Collection) -> str:
    rows = []
    for name, run in records.runs.items():
        tests = run["stages"]["score"]["results"]["tests"]
        first = "newstest2014" if "newstest2014" in tests else next(iter(tests))
        trained = run["stages"]["train"]["results"]
        dev = next((test for test in tests.values() if test["perplexities"]), None)
        bleu, perplexity = (
            (_bleu(dev), f"{dev['perplexities'][0]['value']:.2f}") if dev else ("", "")
        )
        rows.append(
            f"| {records.link(name)} | {run['system']} "
            f"| {_duration(trained['seconds'])}, {trained['step']:,} steps | {first} "
            f"| {_bleu(tests[first])} | {_bleu(tests[first], SPLIT)} | {bleu} | {perplexity} |"
        )
    shown = {_title(run) for run in records.runs.values()}
    for title, (score, _, dev_scores) in PAPER.items():
        if title in shown:
            rows.append(
                f"| {title} | the paper, WMT 2014 | | newstest2014 | | {score} | {dev_scores} |"
            )
    head = "run | system | training | test | sacreBLEU | compounds split | dev BLEU | dev PPL"
    return _table(head, rows)


def _comparisons(records: Collection) -> Iterator[str]:
    if records.comparisons:
        yield "## Compared with the baseline"
        yield """Paired bootstrap. A difference is the first system's score minus the second's. The
records have it in the other conventions too."""
    for name, record in records.comparisons.items():
        first, second = (_contender(records, record, place) for place in (0, 1))
        rows = []
        for test, found in record["tests"].items():
            by_name = {one["convention"]["name"]: one for one in found["comparisons"]}
            cells = (_difference(by_name[which]) for which in ("sacreBLEU", SPLIT))
            rows.append(f"| {test} | {' | '.join(cells)} |")
        yield f"### {name}"
        yield f"{first}, against {second}."
        yield _table("test set | sacreBLEU | 95 % | p | compounds split | 95 % | p", rows)


def _contender(records: Collection, comparison: Record, place: int) -> str:
    """One side of a comparison, with the training of the run that has these translations."""
    scored = {test: one["hypotheses"][place] for test, one in comparison["tests"].items()}
    title = comparison["systems"][place]["system"]
    for name, run in records.runs.items():
        if scored.items() <= run["stages"]["score"]["inputs"]["hypotheses"].items():
            trained = run["stages"]["train"]["results"]
            # Before its clock starts, the baseline may run each shape once.
            warm = trained.get("warm_seconds")
            warmed = f" after {_duration(warm)} to warm up" if warm else ""
            time, tokens = _duration(trained["seconds"]), trained["target_tokens"]
            return f"{title} ({records.link(name)}, {time}{warmed}, {tokens:,} target tokens)"
    return f"{title} ({comparison['systems'][place]['name']})"


def _difference(compared: Record) -> str:
    low, high = compared["interval"]["low"], compared["interval"]["high"]
    return f"{compared['difference']:+.2f} | {low:+.2f} to {high:+.2f} | {compared['p_value']:.3f}"


def _pictures(records: Collection) -> Iterator[str]:
    yield "## Training curves"
    yield "Runs share a picture if they were validated on the same tokens."
    for file, shown in curves(records).items():
        yield f"![Training curves of {', '.join(shown)}]({records.directory.name}/{file})"


def _costs(records: Collection) -> str:
    rows = []
    for name, run in records.runs.items():
        trained = run["stages"]["train"]["results"]
        seconds, tokens = trained["seconds"], trained["target_tokens"]
        # Records without `device_seconds` are of a single device.
        flops = trained.get("device_seconds", seconds) * trained["sustained_flops"]
        paper = PAPER.get(_title(run))
        rows.append(
            f"| {name} | {_duration(seconds)} | {trained['step']:,} | {tokens:,} "
            f"| {tokens / seconds:,.0f} | {flops:.2e} "
            f"| {tokens * trained['flops_per_target_token']:.2e} | {_energy(trained)} "
            f"| {f'{paper.flops:.1e}' if paper else ''} |"
        )
    head = (
        "run | time | steps | target tokens | tokens/s | FLOPs, paper's method | FLOPs, counted "
        "| energy | paper's FLOPs"
    )
    return _table(head, rows)


def _energy(trained: Record) -> str:
    """Of older records, which measured it."""
    joules = [sitting["joules"] for sitting in trained.get("sittings", [])]
    return "" if None in joules or not joules else f"{sum(joules) / 3.6e6:.3f} kWh"


def _scores(records: Collection, name: str) -> Iterator[str]:
    run = records.runs[name]
    rows, signatures = [], {}
    for test, report in run["stages"]["score"]["results"]["tests"].items():
        for score in (*report["systems"][0]["scores"], *report["perplexities"]):
            title, interval = score["convention"]["name"], score.get("interval")
            spread = f"{interval['low']:.2f} to {interval['high']:.2f}" if interval else ""
            signatures[title] = score["convention"]["signature"]
            rows.append(
                f"| {test} | {report['sentences']:,} | {title} | {score['value']:.2f} | {spread} |"
            )
    yield f"## {name}"
    yield f"{run['recipe']['title']}; {run['system']}."
    yield _table("test set | sentences | convention | value | 95 %", rows)
    yield "\n".join(f"- {title}: `{signature}`" for title, signature in signatures.items())


def _origin(records: Collection, name: str) -> Iterator[str]:
    run = records.runs[name]
    stages = run["stages"]
    trained, prepared = stages["train"], stages["prepare"]["results"]
    by = trained["by"]
    yield f"### {name}: origin"
    yield (
        f"Commit {by['commit']}, source `{by['source'][:12]}`, seed {trained['inputs']['seed']}; "
        f"{', '.join(by['devices'])}; torch {by['torch']}. "
        f"Vocabulary `{prepared['vocabulary'][:12]}`."
    )
    texts = ((text, prepared["corpora"][text["name"]]) for text in run["recipe"]["texts"])
    yield "\n".join(
        f"- {text['name']}: {corpus['pairs']:,} pairs, `{corpus['hash'][:12]}`; {text['licence']}"
        for text, corpus in texts
    )
    if kept := records.translations(name):
        files = (f"[{test}]({records.directory.name}/{name}/{kept[test].name})" for test in kept)
        yield f"The scored translations: {', '.join(files)}."
    # Older records list each command of a training as a sitting, and may lack some commands.
    sittings = [one["by"] for one in trained["results"].get("sittings", [])]
    makers = [stages["prepare"]["by"], *sittings, *(stage["by"] for stage in stages.values())]
    commands = dict.fromkeys(maker["command"] for maker in makers if "command" in maker)
    yield "\n".join(["```text", *commands, "```"])


def _bleu(report: Record, convention: str = "sacreBLEU") -> str:
    scores = report["systems"][0]["scores"]
    return next(f"{s['value']:.2f}" for s in scores if s["convention"]["name"] == convention)


def _title(run: Record) -> str:
    """The paper's system of this size and these languages."""
    size = {512: "base", 1024: "big"}.get(run["recipe"]["experiment"]["model"]["d_model"], "")
    return f"{run['recipe']['source_language']}-{run['recipe']['target_language']} {size}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.2f} h"


def main() -> None:
    """Write the page and its pictures, or a comparison."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--compare", nargs=3, type=Path, metavar=("WORK", "OTHER", "RECORD"))
    chosen = arguments.parse_args()
    if chosen.compare:
        first, second, output = chosen.compare
        output.write_text(json.dumps(compare(first, second), indent=2) + "\n", encoding="utf-8")
        return
    records = Collection.read(DOCS / "results")
    for file, shown in curves(records).items():
        draw(shown, records.directory / file)
    (DOCS / "results.md").write_text(page(records), encoding="utf-8")


if __name__ == "__main__":
    main()
