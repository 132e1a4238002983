"""`transept evaluate`: scores of translations, each with the convention it is counted by."""

import dataclasses
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from transept.api.config import TranslationConfig, Watch
from transept.cli.app import Flag, complain
from transept.cli.lines import check_uncompressed, told_too_long
from transept.cli.models import ANY_TRANSLATOR, MODEL_OPTIONS, Models, Translators
from transept.cli.options import given, remembers_given
from transept.cli.progress import ProgressBar
from transept.config import structure
from transept.errors import ConfigError, DataError
from transept.runtime.interrupt import import_torch
from transept.text.files import describe
from transept.text.moses import Language

if TYPE_CHECKING:
    from transept.api.texts import Translation
    from transept.api.transducer import Transducer
    from transept.evaluation.grid import Grid, Settings, Trial
    from transept.evaluation.scores import Perplexity, Report

Words = Annotated[
    tuple[str, ...],
    Parameter(consume_multiple=True, json_list=False, negative="", show_default=False),
]
FIXED = Parameter(parse=False)


@remembers_given
@dataclass(frozen=True, kw_only=True)
class Search(TranslationConfig):
    """How the test set is decoded. Each line is one sentence and has one translation."""

    n_best: Annotated[int, FIXED] = 1
    split: Annotated[bool, FIXED] = False
    source_language: Annotated[Language, FIXED] = "other"


@remembers_given
@dataclass(frozen=True, kw_only=True)
class Files:
    """What is compared."""

    reference: Path
    """What the translations should be, one sentence a line."""
    hypothesis: Path | None = None
    """The translations to score; - is standard input. Without them, a model translates --source."""
    source: Path | None = None
    """What the model shall translate, line by line."""
    other: Path | None = None
    """Another system's translations of the same sentences, to compare with."""
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    """Where to keep the model's translations."""


USUAL = Search()
FILES = Parameter(name="*", group=Group("Files", sort_key=0))
SEARCH = Parameter(name="*", group=Group("Search", sort_key=2))
SCORES = Parameter(group=Group("Scores", sort_key=4))


def evaluate(
    *,
    files: Annotated[Files, FILES],
    models: Annotated[Translators, MODEL_OPTIONS] = ANY_TRANSLATOR,
    search: Annotated[Search, SEARCH] = USUAL,
    grid: Annotated[Words | None, SCORES] = None,
    perplexity: Annotated[Flag, SCORES] = False,
    target_language: Annotated[Language | None, SCORES] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=""), SCORES] = False,
) -> None:
    """Score translations, or a model, by every convention at once.

    The translations are those of a file (--hypothesis), or a model first makes them from --source.
    With --other, two systems are compared. Files are plain text as people write it (cased, not
    tokenised), one sentence a line, UTF-8; .gz, .xz and .zst are read too. The paper's convention
    is tokenised BLEU with compounds split; compare scores only with scores that have the same
    signature.

    Args:
        files: What is compared.
        models: Which model to use, where --source is translated.
        search: How to translate.
        grid: Try every combination of these settings on a development set and show the best:
            `--grid beam_size=1,4,8 length_penalty=0,0.6,1`.
        perplexity: Do not translate: only tell how probable the model finds the references.
        target_language: The language of the translations, for the Moses tokenizer. Unless given,
            the ending of the reference's name (`test.de`).
        as_json: Print one JSON object instead of tables.
    """
    _refuse_useless(files, models, search, grid, perplexity, target_language)
    language = target_language or _language_of(files.reference)
    if files.hypothesis is not None:
        _score_file(files, files.hypothesis, language, as_json)
        return
    if files.source is None:
        raise ConfigError(
            "nothing to score: give --hypothesis, a file of translations, or --source and a model "
            "to translate it"
        )
    tried = None if grid is None else _grid(grid, search)
    import_torch()
    if tried is not None:
        _choose(files.source, files.reference, models, search, tried, as_json)
    elif perplexity:
        models = models.native("--perplexity")
        _measure_perplexity(files.source, files.reference, models, as_json)
    else:
        _score_model(files, files.source, models, search, language, as_json)


def _refuse_useless(
    files: Files,
    models: Translators,
    search: Search,
    grid: Sequence[str] | None,
    perplexity: bool,
    target_language: Language | None,
) -> None:
    """Refuse options that would have no effect, before torch is imported."""
    translating = given(models) | given(search) | {"grid": grid, "perplexity": perplexity}
    if files.hypothesis is not None:
        _refuse("--hypothesis", source=files.source, output=files.output, **translating)
    written = {"other": files.other, "output": files.output, "target_language": target_language}
    if grid is not None:
        _refuse("--grid", **written, perplexity=perplexity)
    if perplexity:
        _refuse("--perplexity", **written, **given(search), shortlist=models.shortlist)


def _refuse(option: str, **others: object) -> None:
    """Refuse the other options that are given: beside this one they make no sense."""
    for name, value in others.items():
        if value is not None and value is not False:
            other = name.replace("_", "-")
            raise ConfigError(f"{option} and --{other} do not go together; leave one out")


def _language_of(path: Path) -> Language:
    from transept.evaluation.reading import language_of

    return language_of(path)


# --- files -----------------------------------------------------------------------------------


def _score_file(files: Files, hypothesis: Path, language: Language, as_json: bool) -> None:
    from transept.evaluation.reading import read_aligned
    from transept.evaluation.report import System
    from transept.evaluation.report import evaluate as score

    paths = [files.reference, hypothesis, *([files.other] if files.other else [])]
    references, *outputs = read_aligned(paths)
    systems = [
        System(describe(path), lines) for path, lines in zip(paths[1:], outputs, strict=True)
    ]
    other = systems[1] if files.other else None
    report = score(systems[0], references, other=other, language=language)
    _present(report, files.reference, {}, as_json)


def _present(
    report: "Report", reference: Path, about_model: Mapping[str, Any], as_json: bool
) -> None:
    from transept.cli.evaluation_views import show_report

    if as_json:
        _write_json({"reference": str(reference), **about_model, **dataclasses.asdict(report)})
    else:
        show_report(report, reference, about_model)
    for warning in report.warnings:
        complain(f"warning: {warning}")
    for system in report.systems:
        for warning in system.warnings:
            complain(f"warning: {system.name}: {warning}")


def _write_json(described: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(described) + "\n")


# --- models ----------------------------------------------------------------------------------


def _score_model(
    files: Files,
    source: Path,
    models: Translators,
    config: TranslationConfig,
    language: Language,
    as_json: bool,
) -> None:
    from transept.evaluation.reading import read_aligned
    from transept.evaluation.report import System
    from transept.evaluation.report import evaluate as score
    from transept.text.files import write_sentences

    paths = [source, files.reference, *([files.other] if files.other else [])]
    sources, references, *others = read_aligned(paths)
    if files.output is not None:
        check_uncompressed(files.output)
        if not files.output.parent.is_dir():
            raise DataError(f"{files.output.parent}: is no directory; choose another --output")
    transducer = models.load()
    with ProgressBar("sentences", len(sources), results_to_stdout=False) as bar:
        watch = partial(bar.share, len(sources))
        translations = _decode(transducer, source, sources, config, watch)
    hypotheses = [one.text.replace("\n", " ") for one in translations]
    if files.output is not None:
        write_sentences(files.output, hypotheses)
    other = System(str(files.other), others[0]) if files.other else None
    report = score(System(models.names, hypotheses), references, other=other, language=language)
    report = dataclasses.replace(
        report, perplexities=_perplexities(transducer, sources, references)
    )
    _present(report, files.reference, _about(source, models, transducer, config), as_json)
    if unfinished := sum(not one.outputs[0].finished for one in translations):
        complain(
            f"warning: {unfinished:,} of {len(translations):,} translations were ended by the "
            "maximum length; see --max-length-extra"
        )


def _decode(
    transducer: "Transducer",
    path: Path,
    sources: Sequence[str],
    config: TranslationConfig,
    watch: Watch,
) -> "list[Translation]":
    from transept.api.texts import TooLongError

    try:
        return transducer.translate(sources, watch=watch, **dataclasses.asdict(config))
    except TooLongError as error:
        raise told_too_long(f"{describe(path)}, line {error.number}", error) from error


def _about(
    source: Path, models: Translators, transducer: "Transducer", config: TranslationConfig
) -> dict[str, Any]:
    fields = ("beam_size", "length_penalty", "max_length_factor", "max_length_extra")
    search = {field: getattr(config, field) for field in fields}
    engine = transducer.engine.name
    return {"source": str(source), "model": models.names, "engine": engine, "search": search}


def _about_pair(source: Path, reference: Path, sentences: int, models: Models) -> dict[str, Any]:
    return {
        "reference": str(reference),
        "sentences": sentences,
        "source": str(source),
        "model": models.names,
    }


def _measure_perplexity(source: Path, reference: Path, models: Translators, as_json: bool) -> None:
    from transept.cli.evaluation_views import show_perplexities
    from transept.evaluation.reading import read_aligned

    sources, references = read_aligned([source, reference])
    found = _perplexities(models.load(), sources, references)
    about = _about_pair(source, reference, len(references), models)
    if as_json:
        _write_json({**about, "perplexities": [dataclasses.asdict(one) for one in found]})
    else:
        show_perplexities(found, about)


def _perplexities(
    transducer: "Transducer", sources: Sequence[str], references: Sequence[str]
) -> "tuple[Perplexity, Perplexity]":
    from transept.api.perplexity import measure_perplexities

    with ProgressBar("perplexity", len(sources), results_to_stdout=False) as bar:
        watch = partial(bar.share, len(sources))
        return measure_perplexities(transducer, sources, references, watch)


# --- a grid of settings ----------------------------------------------------------------------


def _grid(words: Sequence[str], search: Search) -> "Grid":
    """The settings to try. A setting in the grid cannot be given as an option as well."""
    from transept.evaluation.grid import Grid

    grid, fixed = Grid.parse(words), given(search)
    for name in fixed.keys() & grid.values.keys():
        _refuse(f"--grid {name}", **{name: fixed[name]})
    return grid


def _choose(
    source: Path,
    reference: Path,
    models: Translators,
    config: TranslationConfig,
    grid: "Grid",
    as_json: bool,
) -> None:
    from transept.cli.evaluation_views import show_trials
    from transept.evaluation.grid import best
    from transept.evaluation.reading import read_aligned

    usual = dataclasses.asdict(config)
    fixed = {name: value for name, value in usual.items() if value is not None}
    configs = [
        (one, structure(TranslationConfig, {**fixed, **one}, dict.fromkeys(one, "--grid")))
        for one in grid
    ]
    sources, references = read_aligned([source, reference])
    transducer = models.load()
    trials = []
    total = len(configs) * len(sources)
    with ProgressBar("sentences", total, results_to_stdout=False) as bar:
        watch = partial(bar.share, len(sources))
        for settings, each in configs:
            begin = time.monotonic()
            translations = _decode(transducer, source, sources, each, watch)
            hypotheses = [one.text for one in translations]
            trials.append(_trial(settings, hypotheses, references, time.monotonic() - begin))
            bar.advance(len(sources))
    about = _about_pair(source, reference, len(references), models)
    if as_json:
        listed = [dataclasses.asdict(trial) for trial in trials]
        _write_json({**about, "trials": listed, "best": dict(best(trials).settings)})
    else:
        show_trials(trials, best(trials), about)


def _trial(
    settings: "Settings", hypotheses: Sequence[str], references: Sequence[str], seconds: float
) -> "Trial":
    from transept.evaluation.conventions import sacre_bleu
    from transept.evaluation.grid import Trial
    from transept.evaluation.report import BOOTSTRAP

    bleu = sacre_bleu()
    score = BOOTSTRAP.score(bleu, bleu.count(hypotheses, references))
    return Trial(settings=settings, score=score, seconds=seconds)
