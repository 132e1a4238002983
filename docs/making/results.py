"""Write the pages of results and their charts from the records of recipes.

    python docs/making/results.py
    python docs/making/results.py --examples
    python docs/making/results.py --compare WORK OTHER docs/results/NAME.json

The first command writes `docs/results.md`, `docs/internals/results-log.md`, the chart
`docs/figures/results.svg` and the charts in `docs/results/` from the JSON files there. Such a file
is the `record.json` of a work directory, or a comparison. The second command first translates the
examples with the bundled models and stores them in `docs/results/examples.json`. The third command
compares two work directories on the same test sets by paired bootstrap; the directories are those
of `transept recipe run` or of `benchmarks/peer_experiment.py`. Translations in
`docs/results/NAME/TEST.LANGUAGE.xz` are linked if they are the ones that NAME.json scored.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from making.records import (
    MARIAN,
    OURS,
    PAPER,
    Collection,
    Record,
    compared_with,
    difference,
    duration,
    run_of,
    sha256,
    system_of,
    table,
    title_of,
)
from making.result_charts import curves, draw, overview
from making.results_log import log

DOCS: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = {
    "en-de": (
        "I would like a cup of tea.",
        "My grandmother has lived in this house for forty years.",
        "Could you tell me where the nearest bakery is?",
        "The committee will vote on the proposal tomorrow.",
        "Attention is all you need.",
    ),
    "de-en": (
        "Wo wohnst du?",
        "Meine Großmutter wohnt seit vierzig Jahren in diesem Haus.",
        "Wenn es morgen regnet, bleiben wir zu Hause.",
        "Der Ausschuss stimmt morgen über den Vorschlag ab.",
        "Das Gesetz wird nie vollkommen sein, aber seine Anwendung sollte gerecht sein.",
    ),
    "en-fr": (
        "Where is the train station?",
        "My grandmother has lived in this house for forty years.",
        "If it rains tomorrow, we will stay at home.",
        "The committee will vote on the proposal tomorrow.",
        "Attention is all you need.",
    ),
    "fr-en": (
        "Où est la gare ?",
        "Ma grand-mère habite cette maison depuis quarante ans.",
        "S'il pleut demain, nous resterons à la maison.",
        "La commission votera demain sur la proposition.",
        "On ne voit bien qu'avec le cœur.",
    ),
}
"""Sentences that each bundled model translates. They are ours: the test sets are not in the
repository."""


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
        assert [sha256(path.read_bytes()) for path in hypotheses] == recorded, hypotheses
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


def page(records: Collection) -> str:
    """The page: one table, one chart, examples."""
    parts = [
        """# Results

All models on this page were trained with this repository on one NVIDIA H200. Scores are sacreBLEU
with the 95 % confidence interval of a bootstrap in parentheses. `docs/making/results.py` writes
this page from the records in `docs/results/`, which hold each score with its signature,
config, commit, seed and the hashes of its data.""",
        "## Scores",
        _overview(records),
        f"""{_paper_says(records)} Our models had less text and less time: at most
{_millions(records)} million sentence pairs, mostly of the European Parliament. The paper had 4.5
million of WMT 2014 for German, and 36 million for French. Its scores have not been reproduced.""",
        f"![Left: BLEU of base models after 6 and 20 minutes, transept above {MARIAN}, with the "
        "paper's score as a line. Right: validation loss over minutes; transept's falls faster.]"
        "(figures/results.svg \"BLEU on newstest2014 in the paper's convention, with 95 % "
        'intervals, and validation loss, over the minutes of training on one H200.")',
        f"## Compared with {MARIAN}",
        _compared(records),
        "## Students of a teacher",
        _students(records),
        *_examples(records),
        "## More",
        """- [Results log](internals/results-log.md): every score in every convention, training
  cost, training curves, commands and hashes.
- [Bundled models](models.md): data, licence and limits of all four.
- [Reproduce the paper](guides/reproduce.md): the recipes and how to run them.""",
    ]
    return "\n\n".join(parts) + "\n"


def _overview(records: Collection) -> str:
    tests = ("newstest2014", "newstest2013", "europarl", "tatoeba")
    rows = []
    for name, run in sorted(records.runs.items(), key=lambda item: _order(item[1])):
        found = run["stages"]["score"]["results"]["tests"]
        cells = " | ".join(_interval(found[test]) if test in found else "" for test in tests)
        time = duration(run["stages"]["train"]["results"]["seconds"])
        label = f"{title_of(run)}{_kind(run)}, {system_of(run)}".replace(" ,", ",")
        rows.append(f"| {records.link(name, label, up='')} | {time} | {cells} |")
    return table(f"model | training | {' | '.join(tests)}", rows)


def _kind(run: Record) -> str:
    """What distinguishes the recipe from those of the same size: its text or its teacher."""
    kinds = {"all": " on all text", "distil": " with a teacher"}
    return kinds.get(run["name"].partition("-")[0], "")


def _order(run: Record) -> tuple[str, bool, float]:
    """By model, transept before the baseline, the longest training first."""
    seconds = run["stages"]["train"]["results"]["seconds"]
    return (title_of(run), system_of(run) == MARIAN, -seconds)


def _interval(report: Record) -> str:
    scores = report["systems"][0]["scores"]
    score = next(one for one in scores if one["convention"]["name"] == "sacreBLEU")
    spread = score.get("interval")
    shown = f"{score['value']:.1f}"
    return f"{shown} ({spread['low']:.1f}–{spread['high']:.1f})" if spread else shown


def _paper_says(records: Collection) -> str:
    shown = {title_of(run) for run in records.runs.values()}
    said = [f"{score.bleu} ({title})" for title, score in PAPER.items() if title in shown]
    return (
        f"The paper reports {', '.join(said)} on newstest2014, as tokenised BLEU with compounds\n"
        "split. That is another convention. The chart and the log have our scores in it."
        if said
        else ""
    )


def _millions(records: Collection) -> str:
    """The pairs that the largest of the models was trained on. Sampled copies count once."""
    pairs = [
        sum(
            run["stages"]["prepare"]["results"]["corpora"][text["name"]]["pairs"]
            for text in run["recipe"]["texts"]
        )
        / run["recipe"]["vocabulary"].get("sampling", {}).get("copies", 1)
        for run in records.runs.values()
    ]
    return f"{max(pairs) / 1e6:.1f}"


def _compared(records: Collection) -> str:
    """A row for each comparison, on the first test set that it has."""
    rows = []
    for name, record in compared_with(records, MARIAN).items():
        test, found = next(iter(record["tests"].items()))
        by_name = {one["convention"]["name"]: one for one in found["comparisons"]}
        times = [_time_of(records, record, place) for place in (0, 1)]
        rows.append(
            f"| {records.link(name, f'{times[0]} against {times[1]}', up='')} | {test} "
            f"| {difference(by_name['sacreBLEU'])} |"
        )
    head = f"training: transept against {MARIAN} | test set | sacreBLEU difference | 95 % | p"
    return (
        "Both systems had the same text, vocabulary and kind of GPU. The difference is transept's\n"
        "score minus the baseline's, by paired bootstrap. transept's run of 6.7 minutes processed\n"
        "as many target tokens as the baseline in 20 minutes. It had batches of 21,504 tokens and\n"
        "`model.initial_gain` 0.5, where the other runs had 25,000 and 1.\n\n" + table(head, rows)
    )


def _students(records: Collection) -> str:
    """The differences of sacreBLEU between our own models, on every test set."""
    tests = ("newstest2014", "newstest2013", "europarl", "tatoeba", "multi30k")
    rows = []
    for name, record in compared_with(records, OURS).items():
        first, second = (one["name"] for one in record["systems"])
        found = record["tests"]
        cells = " | ".join(_gain(found[test]) if test in found else "" for test in tests)
        label = f"{first} against {second}"
        rows.append(f"| {records.link(name, label, up='')} | {cells} |")
    return (
        "The bundled models learned from the translations of a base model, a teacher. The models\n"
        "`europarl-*-small` were bundled before them: they have no teacher, only two corpora and\n"
        "fewer layers. A difference is the first model's sacreBLEU minus the second's, with the\n"
        "95 % interval of a paired bootstrap.\n\n" + table(f"models | {' | '.join(tests)}", rows)
    )


def _gain(compared: Record) -> str:
    one = next(one for one in compared["comparisons"] if one["convention"]["name"] == "sacreBLEU")
    low, high = one["interval"]["low"], one["interval"]["high"]
    return f"{one['difference']:+.1f} ({low:+.1f} to {high:+.1f})"


def _time_of(records: Collection, comparison: Record, place: int) -> str:
    run = run_of(records, comparison, place)
    return duration(run[1]["stages"]["train"]["results"]["seconds"]) if run else "?"


def _examples(records: Collection) -> Iterator[str]:
    if not records.examples:
        return
    yield "## Examples"
    yield """The bundled models translated these sentences with beam 4. The sentences are not from
a test set, because the test sets are not in the repository. The first of each table is from the
README. The others were written before their translations were seen."""
    for model, translated in records.examples.items():
        yield table(
            f"source | translation by `{model}`",
            (f"| {source} | {target} |" for source, target in translated.items()),
        )


def translate_examples() -> Record:
    """The translations of EXAMPLES by the bundled models, with the paper's search."""
    import transept
    from transept.apps.recipes.records import provenance

    models = {}
    for name, sources in EXAMPLES.items():
        model = transept.load(name, engine="native")
        models[name] = {source: model.translate(source).text for source in sources}
    return {"kind": "examples", "models": models, "by": provenance()}


def main() -> None:
    """Write the pages and their charts, or a comparison."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--compare", nargs=3, type=Path, metavar=("WORK", "OTHER", "RECORD"))
    arguments.add_argument("--examples", action="store_true", help="translate the examples first")
    chosen = arguments.parse_args()
    if chosen.compare:
        first, second, output = chosen.compare
        output.write_text(json.dumps(compare(first, second), indent=2) + "\n", encoding="utf-8")
        return
    if chosen.examples:
        made = json.dumps(translate_examples(), indent=2, ensure_ascii=False)
        (DOCS / "results" / "examples.json").write_text(made + "\n", encoding="utf-8")
    records = Collection.read(DOCS / "results")
    for file, shown in curves(records).items():
        draw(shown, records.directory / file)
    for path, text in written(records).items():
        path.write_text(text, encoding="utf-8")


def written(records: Collection) -> dict[Path, str]:
    """The pages and the chart of the page, each with its text."""
    return {
        DOCS / "results.md": page(records),
        DOCS / "internals" / "results-log.md": log(records),
        DOCS / "figures" / "results.svg": overview(records),
    }


if __name__ == "__main__":
    main()
