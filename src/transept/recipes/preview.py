"""What a recipe would do, with sizes: for looking before time is spent."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

from transept.data.fetching.datasets import DATASETS
from transept.data.fetching.fetch import DONE, DOWNLOADS
from transept.model.transformer import Transformer
from transept.recipes.recipe import STAGES, Pair, StageName
from transept.recipes.run import RecipeRun
from transept.wording import counted

UNITS = {"GB": 1e9, "MB": 1e6}
BYTES_TO_RESUME, BYTES_TO_USE = 12, 4
"""Of a parameter: with Adam's two moments, and alone."""


class Line(NamedTuple):
    """One thing that a stage would do."""

    stage: StageName
    what: str


def preview(run: RecipeRun) -> list[Line]:
    """Every stage, in order."""
    parts = {
        "prepare": _prepare(run),
        "train": _train(run),
        "average": _average(run),
        "decode": _decode(run),
        "score": iter(["BLEU in every convention, chrF, intervals" + _perplexities(run)]),
        "report": iter([f"all records in {run.record}"]),
    }
    return [Line(stage, what) for stage in STAGES for what in parts[stage]]


def _prepare(run: RecipeRun) -> Iterator[str]:
    if run.records.read("prepare") is not None:
        yield "done before"
        return
    if run.recipe.dataset is not None:
        yield from _archives(run)
    for text in run.recipe.texts:
        weight = "" if text.weight == 1 else f", {text.weight:g} times an epoch"
        yield f"learn from {text.name}: {_size(run, text)}{weight} ({text.licence})"
    for pair in run.recipe.dev:
        yield f"watch {pair.source.name}: {_size(run, pair)}"
    size = run.recipe.experiment.model.vocab_size
    yield f"a joint vocabulary of {size:,} {run.recipe.vocabulary.kind} pieces"


def _archives(run: RecipeRun) -> Iterator[str]:
    assert run.recipe.dataset is not None
    if run.data is not None and (run.data / DONE).exists():
        return
    for archive in DATASETS[run.recipe.dataset].archives:
        path = Path(run.data or "DATA") / DOWNLOADS / archive.name
        there = f"{_bytes(path.stat().st_size)}, there" if path.exists() else "to come"
        yield f"fetch {archive.url}: {there}"


def _size(run: RecipeRun, pair: Pair) -> str:
    """The size of both files together, or which of them are missing."""
    if run.data is None:
        return f"{pair.source} and {pair.target}"
    paths = [run.data / pair.source, run.data / pair.target]
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        return f"missing: {', '.join(missing)}"
    return _bytes(sum(path.stat().st_size for path in paths))


def _bytes(n: int) -> str:
    name, unit = next((each for each in UNITS.items() if n >= each[1]), ("kB", 1e3))
    return f"{n / unit:,.1f} {name}"


def _train(run: RecipeRun) -> Iterator[str]:
    experiment = run.experiment()
    model, batch = experiment.model, experiment.batch
    n = _parameters(run)
    yield (
        f"{n:,} parameters: N = {model.n_layers}, d_model = {model.d_model}, d_ff = {model.d_ff}, "
        f"h = {model.n_heads}, P_drop = {model.dropout:g}"
    )
    steps = experiment.training.max_steps
    most = f", or {run.minutes:g} minutes of them" if run.minutes is not None else ""
    yield (
        f"{steps:,} steps of {batch.target_tokens:,} target tokens, "
        f"{steps * batch.target_tokens / 1e9:,.1f} billion in all{most}"
    )
    done = run.results("train")
    if done is not None:
        yield f"done before: {done['step']:,} steps, {done['seconds'] / 60:,.1f} minutes"
    keep, size = experiment.checkpoint.keep, n * BYTES_TO_RESUME
    yield f"checkpoints of {_bytes(size)}; {keep} are kept: {_bytes(keep * size)}"


def _average(run: RecipeRun) -> Iterator[str]:
    average = run.recipe.average
    checkpoint = run.experiment().checkpoint
    if checkpoint.every_minutes is not None:
        distance = f"{60 * checkpoint.every_minutes:,.3g} s"
    elif checkpoint.every_steps is not None:
        distance = f"{checkpoint.every_steps:,} steps"
    else:
        distance = f"{checkpoint.every_share:.2g} of the run (15 s to 10 minutes)"
    size = _bytes(_parameters(run) * BYTES_TO_USE)
    yield f"the last {counted(average.last, 'checkpoint')}, {distance} apart: {size}"


def _decode(run: RecipeRun) -> Iterator[str]:
    search = run.recipe.search
    yield f"beam {search.beam_size}, α = {search.length_penalty:g}"
    for test in run.tests:
        yield f"{test.name}: {_size(run, test)}"


def _perplexities(run: RecipeRun) -> str:
    named = [test.name for test in run.tests if test.perplexity]
    return f"; perplexity of {', '.join(named)}" if named else ""


def _parameters(run: RecipeRun) -> int:
    with torch.device("meta"):
        return Transformer(run.recipe.experiment.model).n_parameters()
