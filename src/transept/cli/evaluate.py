"""`transept evaluate`: scores of translations, each labelled with its convention."""

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter
from rich.console import Console

from transept.api.config import TranslationConfig
from transept.cli.app import complain
from transept.cli.lines import check_uncompressed, naming_lines, warn_if_split
from transept.cli.models import ANY_TRANSLATOR, MODEL_OPTIONS, Translators
from transept.cli.outlets import ProgressBar
from transept.cli.score import LABEL, NAME, perplexities, report_console, show_perplexities
from transept.cli.terms import TermOptions, warn_of_missing
from transept.errors import ConfigError, DataError
from transept.progress import Watch
from transept.runtime.interrupt import import_torch
from transept.text.files import describe
from transept.text.glossary import Glossary
from transept.text.moses import Language

if TYPE_CHECKING:
    from transept.api.texts import Translation
    from transept.api.transducer import Transducer
    from transept.evaluation.report import System
    from transept.evaluation.scores import Comparison, Interval, Perplexity, Report, Score

FIXED = Parameter(parse=False)


@dataclass(frozen=True, kw_only=True)
class Search(TranslationConfig):
    """Search settings. Each line has one translation."""

    n_best: Annotated[int, FIXED] = 1
    target_language: Annotated[str | None, Parameter(name="--target")] = None
    """The target language, such as de, for an imported model that has several."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files to compare."""

    reference: Path
    """The correct translations, line by line."""
    hypothesis: Path | None = None
    """The translations to score; - is standard input. Default: the model's output for --source."""
    source: Path | None = None
    """The text for the model to translate, line by line."""
    other: Path | None = None
    """Another system's translations of the same sentences, for comparison."""
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    """The file to write the model's translations to."""


FILES = Parameter(name="*", group=Group("Files", sort_key=0))
SEARCH = Parameter(name="*", group=Group("Search", sort_key=2))
SCORES = Parameter(group=Group("Scores", sort_key=4))


def evaluate(
    *,
    files: Annotated[Files, FILES],
    models: Annotated[Translators | None, MODEL_OPTIONS] = None,
    search: Annotated[Search | None, SEARCH] = None,
    terms: Annotated[TermOptions | None, SEARCH] = None,
    target_language: Annotated[Language | None, SCORES] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative=""), SCORES] = False,
) -> None:
    """Score translations, or a model, with BLEU and chrF.

    The translations are read from a file (--hypothesis), or a model translates --source first. With
    --other, two systems are compared. Files are plain text (cased, not tokenised) in UTF-8,
    optionally compressed (.gz, .xz, .zst). A line of --source is translated sentence by sentence,
    as by transept translate. The perplexity is that of whole lines. The paper reports tokenised
    BLEU with compounds split. Compare scores only if their signatures are the same.

    Args:
        files: The files to compare.
        models: The model that translates --source.
        search: Search settings.
        terms: Required translations.
        target_language: The language of the translations, for the Moses tokenizer. Default: the
            suffix of the reference file (`test.de`).
        as_json: Print one JSON object instead of tables.
    """
    from transept.evaluation.reading import language_of, read_aligned
    from transept.evaluation.report import System
    from transept.evaluation.report import evaluate as evaluate_report

    scored = _file_to_score(files, {"model": models, "search": search, "term": terms})
    paths = [files.reference, scored, *([files.other] if files.other else [])]
    references, lines, *others = read_aligned(paths)
    system = System(describe(scored), lines)
    measured: tuple[Perplexity, ...] = ()
    about: dict[str, Any] = {}
    if files.hypothesis is None:
        glossary = (terms or TermOptions()).terms()
        import_torch()
        decoding = models or ANY_TRANSLATOR, search or Search(), glossary
        system, measured, about = _translate_source(files, scored, *decoding, (lines, references))
    report = evaluate_report(
        system,
        references,
        other=System(str(files.other), others[0]) if files.other else None,
        language=target_language or language_of(files.reference),
    )
    report = dataclasses.replace(report, perplexities=measured)
    if as_json:
        described = {"reference": str(files.reference), **about, **dataclasses.asdict(report)}
        sys.stdout.write(json.dumps(described) + "\n")
    else:
        show_report(report, files.reference, about)
    _warn(report)


def _warn(report: "Report") -> None:
    """Print the warnings of a report and of its systems."""
    for warning in report.warnings:
        complain(f"warning: {warning}")
    for each in report.systems:
        for warning in each.warnings:
            complain(f"warning: {each.name}: {warning}")


def _file_to_score(files: Files, options: Mapping[str, object]) -> Path:
    """The file of translations, or the source file if a model translates it.

    Args:
        files: The files.
        options: The options for a model, by kind. None: not given.
    """
    if files.hypothesis is None:
        if files.source is None:
            raise ConfigError(
                "nothing to score: give --hypothesis, a file of translations, or --source and a "
                "model to translate it"
            )
        if files.output is not None:
            check_uncompressed(files.output)
            if not files.output.parent.is_dir():
                raise DataError(
                    f"{files.output.parent}: is not a directory; choose another --output"
                )
        return files.source
    unused = {
        "--source": files.source,
        "--output": files.output,
        **{f"{kind} options": given for kind, given in options.items()},
    }
    for what, given in unused.items():
        if given is not None:
            raise ConfigError(f"--hypothesis and {what} cannot be combined; omit one of them")
    return files.hypothesis


def _translate_source(
    files: Files,
    source: Path,
    models: Translators,
    search: Search,
    glossary: Glossary | None,
    texts: tuple[Sequence[str], Sequence[str]],
) -> "tuple[System, tuple[Perplexity, ...], dict[str, Any]]":
    """Translate. Return the output, the perplexities, and the settings for the report."""
    from transept.evaluation.report import System
    from transept.text.files import write_sentences

    sources, references = texts
    transducer = models.load()
    with ProgressBar("sentences", len(sources), results_to_stdout=False) as bar:
        watch = partial(bar.share, len(sources))
        translations = decode(transducer, source, sources, search, watch, glossary)
    warn_if_lines_were_split(source, translations)
    hypotheses = [one.text.replace("\n", " ") for one in translations]
    if files.output is not None:
        write_sentences(files.output, hypotheses)
    for number, one in enumerate(translations, start=1):
        warn_of_missing(f"{describe(source)}, line {number}", one.outputs[0].missing)
    if unfinished := sum(not one.outputs[0].finished for one in translations):
        complain(
            f"warning: {unfinished:,} of {len(translations):,} translations reached the "
            "maximum length; see --max-length-extra"
        )
    fields = ("beam_size", "length_penalty", "max_length_factor", "max_length_extra", "split")
    about = {
        "source": str(source),
        "model": models.names,
        "engine": transducer.engine.name,
        "search": {field: getattr(search, field) for field in fields},
    }
    measured = perplexities(transducer, sources, references)
    return System(models.names, hypotheses), measured, about


def decode(
    transducer: "Transducer",
    path: Path,
    sources: Sequence[str],
    config: TranslationConfig,
    watch: Watch,
    glossary: Glossary | None = None,
) -> "list[Translation]":
    """Translate the lines of a file. An error about a line that is too long has its number."""
    with naming_lines(lambda number: f"{describe(path)}, line {number}"):
        return transducer.translate(
            sources, glossary=glossary, watch=watch, **dataclasses.asdict(config)
        )


def warn_if_lines_were_split(path: Path, translations: "Sequence[Translation]") -> None:
    """Warn about each line with a sentence that had too many tokens."""
    for number, one in enumerate(translations, start=1):
        warn_if_split(f"{describe(path)}, line {number}", one.too_long)


# --- tables ----------------------------------------------------------------------------------


def show_report(report: "Report", reference: Path, about_model: Mapping[str, Any]) -> None:
    """Print the scores of one or two systems and, for a model, the search settings."""
    console = report_console()
    console.print(f"{'reference':{LABEL}} {reference}, {report.sentences:,} sentences")
    labels = ("model" if about_model else "hypothesis", "other")
    for label, system in zip(labels, report.systems, strict=False):
        console.print(f"{label:{LABEL}} {system.name}")
        if label == "model":
            console.print(f"{'source':{LABEL}} {about_model['source']}")
            console.print(f"{'search':{LABEL}} {_described_search(about_model['search'])}")
        console.print()
        head = f"{'':{NAME}}{'score':>7}   {'95 % interval':^16}   length ratio"
        console.print(head, style="bold")
        for score in system.scores:
            console.print(f"{score.convention.name:{NAME}}{score_cells(score)}".rstrip())
            console.print(f"  {score.convention.signature}", style="dim")
        console.print()
        if label == "model":
            show_perplexities(console, report.perplexities)
    if report.comparisons:
        title = f"{labels[0]} − other"
        head = f"{title:{NAME}}{'points':>7}   {'95 % interval':^16}  p-value     wins"
        console.print(head, style="bold")
        for comparison in report.comparisons:
            _show_comparison(console, comparison)
        console.print()
    (interval, *_) = (score.interval for score in report.systems[0].scores if score.interval)
    drawn = f"{interval.resamples:,} resamples, seed {interval.seed}"
    if report.comparisons:
        console.print(f"Paired bootstrap, {drawn}; wins are the {labels[0]}'s.")
    else:
        console.print(f"Intervals: bootstrap, {drawn}.")


def score_cells(score: "Score") -> str:
    """The score, its interval and its length ratio, as far as available."""
    interval = _span(score.interval) if score.interval else ""
    ratio = f"{score.breakdown.length_ratio:.3f}" if score.breakdown else ""
    return f"{score.value:7.2f}   {interval:^16}   {ratio:>12}"


def _described_search(search: Mapping[str, Any]) -> str:
    unit = "sentence" if search["split"] else "line"
    return (
        f"beam size {search['beam_size']}, length penalty {search['length_penalty']:g}, "
        f"at most {search['max_length_factor']:g} × source + {search['max_length_extra']} tokens, "
        f"{unit} by {unit}"
    )


def _show_comparison(console: Console, comparison: "Comparison") -> None:
    span = _span(comparison.interval, sign="+")
    console.print(
        f"{comparison.convention.name:{NAME}}{comparison.difference:+7.2f}   {span:^16}  "
        f"{comparison.p_value:7.3f}  {comparison.wins:7.1%}"
    )


def _span(interval: "Interval", sign: str = "") -> str:
    return f"{interval.low:{sign}.2f} to {interval.high:{sign}.2f}"
