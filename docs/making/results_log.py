"""The log of results: everything that the records have."""

from collections.abc import Iterator

from making.records import (
    PAPER,
    SPLIT,
    UP,
    Collection,
    Record,
    bleu,
    difference,
    duration,
    run_of,
    system_of,
    table,
    title_of,
)
from making.result_charts import curves


def log(records: Collection) -> str:
    """Everything that the records have, as one page."""
    parts = [
        f"""# Results log

`docs/making/results.py` writes this page from the records in `docs/{records.directory.name}/`. They
hold each number with its config, commit and seed, and with the hashes of its data.
[Results](../results.md) is the summary.

Compare only scores with the same signature. Where a run had less text or less time than the
paper's, the paper's score is shown for orientation.""",
        "## Summary",
        _summary(records),
        *_comparisons(records),
        *_pictures(records),
        "## Training cost",
        """FLOPs by the paper's method are time × devices × sustained single precision, which was
measured on the device itself. Counted FLOPs are those of the arithmetic that real tokens need.""",
        _costs(records),
        *(part for name in records.runs for part in _scores(records, name)),
        "## Origin of the numbers",
        "Each command is the recorded one, and has the options of its commit.",
        *(part for name in records.runs for part in _origin(records, name)),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(records: Collection) -> str:
    rows = []
    for name, run in records.runs.items():
        tests = run["stages"]["score"]["results"]["tests"]
        first = "newstest2014" if "newstest2014" in tests else next(iter(tests))
        trained = run["stages"]["train"]["results"]
        dev = next((test for test in tests.values() if test["perplexities"]), None)
        of_dev = f"{bleu(dev)} | {dev['perplexities'][0]['value']:.2f}" if dev else " | "
        rows.append(
            f"| {records.link(name)} | {system_of(run)} "
            f"| {duration(trained['seconds'])}, {trained['step']:,} steps | {first} "
            f"| {bleu(tests[first])} | {bleu(tests[first], SPLIT)} | {of_dev} |"
        )
    shown = {title_of(run) for run in records.runs.values()}
    for title, (score, _, dev_scores) in PAPER.items():
        if title in shown:
            rows.append(
                f"| {title} | the paper, WMT 2014 | | newstest2014 | | {score} | {dev_scores} |"
            )
    head = "run | system | training | test | sacreBLEU | compounds split | dev BLEU | dev PPL"
    return table(head, rows)


def _comparisons(records: Collection) -> Iterator[str]:
    if records.comparisons:
        yield "## Comparisons"
        yield """Paired bootstrap. A difference is the first system's score minus the second's. The
records have it in the other conventions too."""
    for name, record in records.comparisons.items():
        first, second = (_contender(records, record, place) for place in (0, 1))
        rows = []
        for test, found in record["tests"].items():
            by_name = {one["convention"]["name"]: one for one in found["comparisons"]}
            cells = (difference(by_name[which]) for which in ("sacreBLEU", SPLIT))
            rows.append(f"| {test} | {' | '.join(cells)} |")
        yield f"### {name}"
        yield f"{first}, against {second}."
        yield table("test set | sacreBLEU | 95 % | p | compounds split | 95 % | p", rows)


def _contender(records: Collection, comparison: Record, place: int) -> str:
    """One side of a comparison, with the training of the run that has these translations."""
    title = system_of(comparison["systems"][place])
    found = run_of(records, comparison, place)
    if found is None:
        return f"{title} ({comparison['systems'][place]['name']})"
    name, run = found
    trained = run["stages"]["train"]["results"]
    # Before its clock starts, the baseline may run each shape once.
    warm = trained.get("warm_seconds")
    warmed = f" after {duration(warm)} to warm up" if warm else ""
    time, tokens = duration(trained["seconds"]), trained["target_tokens"]
    return f"{title} ({records.link(name)}, {time}{warmed}, {tokens:,} target tokens)"


def _pictures(records: Collection) -> Iterator[str]:
    yield "## Training curves"
    yield "Runs share a picture if they were validated on the same tokens."
    for file, shown in curves(records).items():
        names = ", ".join(shown)
        caption = f"Validation loss of {names} over minutes, and over target tokens."
        yield f'![Training curves of {names}]({UP}{records.directory.name}/{file} "{caption}")'


def _costs(records: Collection) -> str:
    rows = []
    for name, run in records.runs.items():
        trained = run["stages"]["train"]["results"]
        seconds, tokens = trained["seconds"], trained["target_tokens"]
        # Records without `device_seconds` are of a single device.
        flops = trained.get("device_seconds", seconds) * trained["sustained_flops"]
        paper = PAPER.get(title_of(run))
        rows.append(
            f"| {name} | {duration(seconds)} | {trained['step']:,} | {tokens:,} "
            f"| {tokens / seconds:,.0f} | {flops:.2e} "
            f"| {tokens * trained['flops_per_target_token']:.2e} | {_energy(trained)} "
            f"| {f'{paper.flops:.1e}' if paper else ''} |"
        )
    head = (
        "run | time | steps | target tokens | tokens/s | FLOPs, paper's method | FLOPs, counted "
        "| energy | paper's FLOPs"
    )
    return table(head, rows)


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
    yield f"{run['recipe']['title']}; {system_of(run)}."
    yield table("test set | sentences | convention | value | 95 %", rows)
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
        folder = f"{UP}{records.directory.name}/{name}"
        files = (f"[{test}]({folder}/{kept[test].name})" for test in kept)
        yield f"The scored translations: {', '.join(files)}."
    # Older records list each command of a training as a sitting, and may lack some commands.
    sittings = [one["by"] for one in trained["results"].get("sittings", [])]
    makers = [stages["prepare"]["by"], *sittings, *(stage["by"] for stage in stages.values())]
    commands = dict.fromkeys(maker["command"] for maker in makers if "command" in maker)
    yield "\n".join(["```text", *commands, "```"])
