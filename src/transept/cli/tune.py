"""`transept tune`: find the best beam size and length penalty on a development set."""

import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from transept.cli.evaluate import (
    FIXED,
    SEARCH,
    Search,
    decode,
    score_cells,
    warn_if_lines_were_split,
)
from transept.cli.models import ANY_TRANSLATOR, MODEL_OPTIONS, Translators
from transept.cli.outlets import ProgressBar
from transept.cli.score import LABEL, report_console
from transept.errors import ConfigError
from transept.runtime.interrupt import import_torch

if TYPE_CHECKING:
    from transept.evaluation.scores import Score

SEVERAL = Parameter(consume_multiple=True, json_list=False, negative="")


@dataclass(frozen=True, kw_only=True)
class OtherSettings(Search):
    """Settings shared by all trials."""

    beam_size: Annotated[int, FIXED] = 4
    length_penalty: Annotated[float, FIXED] = 0.6


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The score and decoding time of one combination of settings."""

    beam_size: int
    length_penalty: float
    score: "Score"
    seconds: float


USUAL = OtherSettings()


def tune(
    *,
    source: Path,
    reference: Path,
    beam_sizes: Annotated[tuple[int, ...], SEVERAL, Parameter(name="--beam-size")] = (1, 4, 8),
    length_penalties: Annotated[tuple[float, ...], SEVERAL, Parameter(name="--length-penalty")] = (
        0,
        0.6,
        1,
    ),
    models: Annotated[Translators, MODEL_OPTIONS] = ANY_TRANSLATOR,
    others: Annotated[OtherSettings, SEARCH] = USUAL,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Find the best beam size and length penalty.

    The model translates a development set with every combination. The one with the highest
    sacreBLEU is chosen. Report scores with the chosen settings on a different set, the test set.

    Args:
        source: The development set, plain or compressed (.gz, .xz, .zst).
        reference: Its correct translations, line by line.
        beam_sizes: The beam sizes to try; 1 is greedy search.
        length_penalties: The values of α to try.
        models: The model.
        others: Other search settings.
        as_json: Print one JSON object instead of a table.
    """
    from transept.evaluation.reading import read_aligned

    combinations = list(itertools.product(beam_sizes, length_penalties))
    if not combinations:
        raise ConfigError("--beam-size and --length-penalty need at least one value each")
    searches = [
        dataclasses.replace(others, beam_size=size, length_penalty=penalty)
        for size, penalty in combinations
    ]
    sources, references = read_aligned([source, reference])
    import_torch()
    trials = _run_trials(searches, models, source, sources, references)
    best = max(trials, key=lambda trial: trial.score.value)  # the first of equal ones
    about = {
        "reference": str(reference),
        "sentences": len(references),
        "source": str(source),
        "model": models.names,
    }
    if as_json:
        listed = [dataclasses.asdict(trial) for trial in trials]
        chosen = {"beam_size": best.beam_size, "length_penalty": best.length_penalty}
        sys.stdout.write(json.dumps({**about, "trials": listed, "best": chosen}) + "\n")
    else:
        _show(trials, best, about)


def _run_trials(
    searches: Sequence[Search],
    models: Translators,
    path: Path,
    sources: Sequence[str],
    references: Sequence[str],
) -> list[Trial]:
    from transept.evaluation.conventions import sacre_bleu
    from transept.evaluation.report import BOOTSTRAP

    bleu, transducer = sacre_bleu(), models.load()
    trials: list[Trial] = []
    total = len(searches) * len(sources)
    with ProgressBar("sentences", total, results_to_stdout=False) as bar:
        for search in searches:
            begin = time.monotonic()
            translations = decode(
                transducer, path, sources, search, partial(bar.share, len(sources))
            )
            seconds = time.monotonic() - begin
            if not trials:
                warn_if_lines_were_split(path, translations)
            counts = bleu.count([one.text for one in translations], references)
            trials.append(
                Trial(
                    beam_size=search.beam_size,
                    length_penalty=search.length_penalty,
                    score=BOOTSTRAP.score(bleu, counts),
                    seconds=seconds,
                )
            )
            bar.advance(len(sources))
    return trials


def _show(trials: Sequence[Trial], best: Trial, about: dict[str, Any]) -> None:
    """Print one row per trial, with the best one marked."""
    console = report_console()
    console.print(f"{'reference':{LABEL}} {about['reference']}, {about['sentences']:,} sentences")
    for label in ("model", "source"):
        console.print(f"{label:{LABEL}} {about[label]}")
    head = (
        f"    beam size  length penalty  sacreBLEU   {'95 % interval':^16}   length ratio  seconds"
    )
    console.print(f"\n{head}", style="bold")
    for trial in trials:
        mark, style = ("*", "bold") if trial is best else (" ", "")
        settings = f"{trial.beam_size:11}{trial.length_penalty:16g}    "
        cells = f"{score_cells(trial.score)}  {trial.seconds:7.1f}"
        console.print(f"{mark} {settings}{cells}", style=style)
    console.print(f"  {best.score.convention.signature}\n", style="dim")
    console.print(f"Best: --beam-size {best.beam_size} --length-penalty {best.length_penalty:g}")
