"""`transept translate`: translate text line by line, and documents as a whole."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from transept.api.config import Format, Options, ReadingConfig, TranslationConfig
from transept.cli.app import Flag, complain
from transept.cli.files import is_text, translate_file
from transept.cli.lines import (
    DraftPrinter,
    Files,
    Line,
    check_uncompressed,
    count,
    format_of,
    growing_groups,
    naming_lines,
    read,
    warn_if_split,
    without_dash,
)
from transept.cli.models import ANY_TRANSLATOR, MODEL_OPTIONS, Translators
from transept.cli.outlets import ProgressBar
from transept.cli.terms import TermOptions, warn_of_missing
from transept.decoding.config import BeamConfig, OutputConfig, SamplingConfig
from transept.documents.opening import FileFormat
from transept.errors import ConfigError, StoppedError, TooLongError
from transept.progress import Watch, no_progress
from transept.runtime.interrupt import import_torch, terminable
from transept.text.glossary import Glossary
from transept.wording import counted

if TYPE_CHECKING:
    from transept.api.texts import Output, Translation
    from transept.api.transducer import Transducer
    from transept.runtime.parts import Parts


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """The input files."""

    files: Files = ()
    """UTF-8 text files, plain or compressed (.gz, .xz, .zst), read one after another, or a document
    such as report.docx."""
    format: FileFormat | None = None
    """text is translated line by line. A file of another format is translated as one document, and
    its markup is kept. Default: by the suffix of the file's name, such as .docx, otherwise text."""
    read_ahead: int = 512
    """The number of lines or documents to translate together. Larger is faster. 1 translates line
    by line, which is the default on a terminal."""

    def __post_init__(self) -> None:
        if self.read_ahead < 1:
            raise ConfigError("--read-ahead must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Reading(ReadingConfig):
    """How to split text, and the target language."""

    target_language: Annotated[str | None, Parameter(name=["--target", "--target-language"])] = None
    """The target language, such as de, for an imported model that has several. A line may instead
    begin with a tag such as `>>de<<`."""


@dataclass(frozen=True, kw_only=True)
class Sampling(SamplingConfig):
    """Random sampling instead of beam search."""

    sample: Flag = False
    """Sample translations at random instead of searching for the best. --n-best N samples N
    translations per line. Needs the native engine, and ignores --shortlist."""

    def __post_init__(self) -> None:
        if not self.sample:
            raise ConfigError("--temperature, --top-k, --top-p and --seed need --sample")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class OutputFormat(TermOptions):
    """The output format, and text that translations must contain."""

    scores: Flag = False
    """Print the score and a tab before each translation."""
    alignments: Flag = False
    """Append ` ||| ` and the word alignment to each translation: `0-0 1-2`, source word first.
    Words are separated by white space and numbered from 0."""
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False
    """Print one JSON object per line, with all fields."""
    stream: Flag = False
    """Print each translation token by token. A terminal shows the part that may still change
    dimmed. A pipe receives only the stable part. Needs the native engine."""
    prefix: str | None = None
    """Text with which every translation must begin. Lines are then not split into sentences."""


Sources = tuple[Sequence[str], Sequence[Path]]
"""Texts, and files. Neither: standard input."""
USUAL, WHOLE = OutputConfig(), Reading()
STANDARD_INPUT, PLAIN = InputOptions(), OutputFormat()
INPUT = Parameter(name="*", group=Group("Input", sort_key=0))
SEARCH = Parameter(name="*", group=Group("Search", sort_key=2))
SAMPLING = Parameter(name="*", group=Group("Sampling", sort_key=3))
OUTPUT = Group("Output", sort_key=4)


def translate(
    *texts: str,
    source: Annotated[InputOptions, INPUT] = STANDARD_INPUT,
    reading: Annotated[Reading, INPUT] = WHOLE,
    models: Annotated[Translators, MODEL_OPTIONS] = ANY_TRANSLATOR,
    beam: Annotated[BeamConfig | None, SEARCH] = None,
    sampling: Annotated[Sampling | None, SAMPLING] = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=OUTPUT)] = None,
    form: Annotated[OutputFormat, Parameter(name="*", group=OUTPUT)] = PLAIN,
    outputs: Annotated[OutputConfig, Parameter(name="*", group=OUTPUT)] = USUAL,
) -> None:
    """Translate text, files or standard input.

    Text is translated line by line, and a document as a whole: HTML, Markdown, subtitles (srt and
    vtt), office documents (docx, odt, pptx, odp, xlsx), epub, po and xliff. A line without letters
    and digits stays as it is. A line of several sentences is translated sentence by sentence and
    keeps its white space. With --n-best above 1, the output has the format of Moses:
    `number ||| translation ||| LogP= log-probability ||| score`, with numbers from 0. The score is
    log P / lp, with the length penalty lp of Wu et al. The score of a line of several sentences is
    the sum of their scores.

    With --output, results are written to a file in parts. After an interruption, run the same
    command to resume. torchrun distributes the parts among GPUs and machines that share that file:
    `torchrun --nproc-per-node 8 -m transept translate --input FILE --output FILE`.

    Args:
        texts: Texts to translate. Default: files or standard input. Write `--` before texts that
            begin with a dash.
        source: The input files.
        reading: How to split text.
        models: The model.
        beam: Beam search settings.
        sampling: Sampling settings.
        output: The output file. Default: standard output.
        form: The output format, and required terms.
        outputs: The number of translations and their maximum length.
    """
    _check(texts, source.files, output)
    texts, files = without_dash(texts), source.files
    format = source.format or format_of(files)
    if form.stream:
        _check_stream(outputs, sampling, form)
    if format != "text":
        _check_document(outputs, form, format)
    glossary = form.terms()
    if sampling is not None:
        _check_sampling(beam, glossary)
    wanted = _search_options(outputs, reading, beam, sampling)
    models = _native_if_needed(models, form, sampling)
    if not is_text(format):
        job = TranslationJob(models, wanted, sampling, form, glossary, "html")
        translate_file(job, Notes(), (texts, files), output, format)
        return
    job = TranslationJob(models, wanted, sampling, form, glossary, format)
    n_lines = count(texts, files, format)
    import_torch()
    write = _print if output is None else partial(_translate_in_parts, output)
    write(job, (texts, files), source.read_ahead, n_lines)


def _search_options(
    outputs: OutputConfig, reading: Reading, beam: BeamConfig | None, sampling: Sampling | None
) -> dict[str, Any]:
    """The options of `Transducer.translate`, checked together."""
    wanted = asdict(outputs) | asdict(reading)
    if sampling is not None:
        return wanted
    return asdict(TranslationConfig(**wanted, **asdict(beam or BeamConfig())))


def _native_if_needed(
    models: Translators, form: OutputFormat, sampling: Sampling | None
) -> Translators:
    """The models with the native engine, if an option needs it."""
    for option, is_given in {"--stream": form.stream, "--sample": sampling is not None}.items():
        models = models.native(option) if is_given else models
    return models


def _check(texts: Sequence[str], files: Sequence[Path], output: Path | None) -> None:
    if texts and files:
        raise ConfigError("texts and --input cannot be combined")
    if output is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("several ranks cannot share standard output: give --output FILE")


def _check_sampling(beam: BeamConfig | None, glossary: Glossary | None) -> None:
    """Reject options that cannot be combined with --sample."""
    if beam is not None:
        raise ConfigError("--sample cannot be combined with --beam-size or --length-penalty")
    if glossary is not None:
        raise ConfigError("--sample may omit a term, so it excludes --glossary and --keep")


def _check_stream(outputs: OutputConfig, sampling: Sampling | None, form: OutputFormat) -> None:
    """Reject options that cannot be combined with --stream."""
    incompatible = {
        "--n-best": outputs.n_best > 1,
        "--scores": form.scores,
        "--alignments": form.alignments,
        "--json": form.as_json,
        "--sample": sampling is not None,
    }
    if wrong := [option for option, is_given in incompatible.items() if is_given]:
        raise ConfigError(f"--stream and {', '.join(wrong)} cannot be combined; omit one of them")


def _check_document(outputs: OutputConfig, form: OutputFormat, format: FileFormat) -> None:
    """Reject options that cannot be combined with a format other than text."""
    incompatible = {
        "--n-best": outputs.n_best > 1,
        "--scores": form.scores,
        "--alignments": form.alignments,
        "--stream": form.stream,
        "--prefix": form.prefix is not None,
        "--json": form.as_json and not is_text(format),
    }
    if wrong := [option for option, is_given in incompatible.items() if is_given]:
        raise ConfigError(
            f"the format {format} and {', '.join(wrong)} cannot be combined; omit one of them, or "
            "give --format text"
        )


def _print(job: "TranslationJob", sources: Sources, read_ahead: int, n_lines: int | None) -> None:
    """Translate to standard output. Lines that are typed are translated one by one."""
    texts, files = sources
    transducer = job.models.load(n_lines)
    if not texts and not files and sys.stdin.isatty():
        what = "text, one line at a time" if job.format == "text" else "a document"
        sys.stderr.write(f"Type {what}. Press Ctrl-D to end.\n")
        read_ahead = 1
    lines = read(texts, files, job.format)
    if job.form.stream:
        _print_drafts(job, transducer, lines)
    else:
        _print_groups(job, transducer, growing_groups(lines, read_ahead), n_lines)


def _print_drafts(job: "TranslationJob", transducer: "Transducer", lines: Iterable[Line]) -> None:
    """Translate lines one by one, and print each token by token."""
    printer, options = DraftPrinter(), job.wanted
    for line in lines:
        with naming_lines(partial(_place, [line])):
            prefix = job.form.prefix
            (units,) = transducer.units([line.text], prefix=prefix, **options)
            warn_if_split(line.place, [one.split_from for one in units if one.split_from])
            drafts = transducer.stream(line.text, prefix=prefix, glossary=job.glossary, **options)
            warn_of_missing(line.place, printer.write(drafts))


def _print_groups(
    job: "TranslationJob",
    transducer: "Transducer",
    groups: Iterable[list[Line]],
    n_lines: int | None,
) -> None:
    """Translate and print lines, one group at a time."""
    number, notes = 0, Notes()
    with ProgressBar("lines", n_lines, results_to_stdout=True) as bar:
        for lines in groups:
            watch = partial(bar.share, len(lines))
            for text in job.translate(transducer, lines, number, notes, watch):
                sys.stdout.buffer.write(text.encode())
            number += len(lines)
            sys.stdout.buffer.flush()
            bar.advance(len(lines))
    notes.warn()


@dataclass
class Notes:
    """Lines to warn about, which are easily overlooked in a long file."""

    cut: list[str] = field(default_factory=list)
    """The locations of lines whose translation reached the maximum length."""
    missing: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """The locations of lines whose translation lacks required terms, and the terms."""

    def add(self, line: Line, result: "Translation") -> None:
        """Note a line if its translation is truncated or lacks terms."""
        warn_if_split(line.place, result.too_long)
        best = result.outputs[0]
        if best.missing:
            self.missing.append((line.place, best.missing))
        if not best.finished:
            self.cut.append(line.place)

    def warn(self) -> None:
        """Print the warnings."""
        for place, terms in self.missing:
            warn_of_missing(place, terms)
        if self.cut:
            complain(
                f"warning: {counted(len(self.cut), 'translation')} reached the maximum length, the "
                f"first at {self.cut[0]}; see --max-length-extra"
            )


@dataclass(frozen=True)
class TranslationJob:
    """The model and settings for all lines."""

    models: Translators
    wanted: dict[str, Any]
    sampling: Sampling | None
    form: OutputFormat
    glossary: Glossary | None
    format: Format

    def translate(
        self,
        transducer: "Transducer",
        lines: Sequence[Line],
        first: int,
        notes: Notes,
        watch: Watch = no_progress,
    ) -> Iterator[str]:
        """Translate lines or documents and yield the output. `first` is the number of the first.

        Lines to warn about are added to `notes`.
        """
        options: Options = {
            "format": self.format,
            "alignments": self.form.alignments,
            "prefix": self.form.prefix,
            "sampling": self.sampling,
            "glossary": self.glossary,
            "watch": watch,
        }
        results = _translate(transducer, lines, self.wanted, options)
        for number, result in enumerate(results, start=first):
            notes.add(lines[number - first], result)
            if self.format == "text" or self.form.as_json:
                rows = _result_lines(result, number, self.wanted["n_best"], self.form)
                yield from (f"{row}\n" for row in rows)
            else:
                yield result.text


def _translate_in_parts(
    output: Path, job: TranslationJob, sources: Sources, size: int, n_lines: int | None
) -> None:
    """Translate this rank's parts of `size` lines. When all ranks are done, join the parts."""
    from transept.checkpoint import weights_sha256
    from transept.runtime.device import take_own_gpu
    from transept.runtime.parts import Parts
    from transept.runtime.storage import digest

    texts, files = sources
    if job.form.stream or n_lines is None:
        raise ConfigError(
            "--output needs texts, or --input with files that can be read twice, and cannot be "
            "combined with --stream"
        )
    check_uncompressed(output)
    parts = Parts.of(output)
    job = dataclasses.replace(job, models=job.models.resolved())
    settings = asdict(job) | {
        "lines": size,
        "texts": texts,
        "files": {str(path): digest(path) for path in files},
        "weights": [weights_sha256(Path(model)) for model in job.models.model],
    }
    if not parts.begin(settings):
        return
    take_own_gpu()
    with _resumable(parts.directory):
        everything = read(texts, files, job.format)
        n_parts = _translate_parts(parts, job, everything, size, n_lines)
        parts.join(n_parts)


def _translate_parts(
    parts: "Parts", job: TranslationJob, everything: Iterator[Line], size: int, n_lines: int
) -> int:
    """Write this rank's parts, and return the total number of parts."""
    transducer, number, notes = job.models.load(n_lines), 0, Notes()
    with ProgressBar("lines", n_lines, results_to_stdout=False) as bar:
        while lines := list(islice(everything, size)):
            if parts.is_mine(number):
                watch = partial(bar.share, len(lines))
                results = job.translate(transducer, lines, number * size, notes, watch)
                parts.put(number, "".join(results).encode())
            number += 1
            bar.advance(len(lines))
    notes.warn()
    return number


@contextmanager
def _resumable(directory: Path) -> Iterator[None]:
    try:
        with terminable():
            yield
    except KeyboardInterrupt:
        raise StoppedError(
            f"stopped. Finished parts are in {directory}; run the same command to resume"
        ) from None


def _translate(
    transducer: "Transducer", lines: Sequence[Line], wanted: dict[str, Any], options: Options
) -> "Iterator[Translation]":

    def translated(some: Sequence[Line]) -> "list[Translation]":
        texts = [line.text for line in some]
        return transducer.translate(texts, **options, **wanted)

    with naming_lines(partial(_place, lines)):
        try:
            yield from translated(lines)
        except TooLongError as error:
            yield from translated(lines[: error.number - 1])
            raise


def _place(lines: Sequence[Line], number: int) -> str:
    return lines[number - 1].place


def _result_lines(
    result: "Translation", number: int, n_best: int, form: OutputFormat
) -> Iterator[str]:
    if form.as_json:
        yield json.dumps(_as_json(result, form.alignments), ensure_ascii=False)
        return
    for one in result.outputs:
        text = one.text.replace("\n", " ")  # a model can write any byte
        links = f" ||| {one.pharaoh}" if form.alignments else ""
        if n_best > 1:
            log_p = f"LogP= {one.log_probability:.6f}"
            text = f"{number} ||| {text} ||| {log_p} ||| {one.score:.6f}"
        elif form.scores:
            text = f"{one.score:.6f}\t{text}"
        yield f"{text}{links}"


def _as_json(result: "Translation", alignments: bool) -> dict[str, Any]:
    return {
        "source": result.source,
        "translation": result.text,
        "score": result.score,
        "outputs": [_output_as_json(one, alignments) for one in result.outputs],
        "sentences": [
            {
                "source": one.source,
                "translation": one.outputs[0].text,
                "score": one.outputs[0].score,
            }
            for one in result.sentences
            if one.source
        ],
    }


def _output_as_json(one: "Output", alignments: bool) -> dict[str, Any]:
    unwanted = {"alignment": not alignments, "missing": not one.missing}
    return {key: value for key, value in asdict(one).items() if not unwanted.get(key)}
