"""`transept translate`: translate text line by line."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from transept.api.config import Options, ReadingConfig, TranslationConfig
from transept.cli.app import Flag, complain, write_line
from transept.cli.lines import (
    DraftPrinter,
    Files,
    Line,
    check_uncompressed,
    count,
    growing_groups,
    naming_lines,
    read,
    without_dash,
)
from transept.cli.models import ANY_TRANSLATOR, MODEL_OPTIONS, Translators
from transept.cli.outlets import ProgressBar
from transept.decoding.config import BeamConfig, OutputConfig, SamplingConfig
from transept.errors import ConfigError, StoppedError
from transept.progress import Watch, no_progress
from transept.runtime.interrupt import import_torch, terminable
from transept.wording import counted

if TYPE_CHECKING:
    from transept.api.texts import Translation
    from transept.api.transducer import Transducer
    from transept.runtime.parts import Parts


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """The input files."""

    files: Files = ()
    """UTF-8 text files, plain or compressed (.gz, .xz, .zst), read one after another."""
    read_ahead: int = 512
    """The number of lines to translate together. Larger is faster. 1 translates line by line, which
    is the default on a terminal."""

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
class OutputFormat:
    """The output format."""

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
    """Translate text, files or standard input, line by line.

    An empty line stays empty. A line of several sentences is translated sentence by sentence and
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
        form: The output format.
        outputs: The number of translations and their maximum length.
    """
    files, read_ahead = source.files, source.read_ahead
    _check(texts, files, output)
    texts = without_dash(texts)
    if form.stream:
        _check_stream(outputs, sampling, form)
    if sampling is not None and beam is not None:
        raise ConfigError("--sample cannot be combined with --beam-size or --length-penalty")
    wanted = asdict(outputs) | asdict(reading)
    if sampling is None:
        wanted = asdict(TranslationConfig(**wanted, **asdict(beam or BeamConfig())))
    for option, is_given in {"--stream": form.stream, "--sample": sampling is not None}.items():
        models = models.native(option) if is_given else models
    n_lines = count(texts, files)
    import_torch()
    job = TranslationJob(models, wanted, sampling, form)
    if output is not None:
        _translate_in_parts(job, output, (texts, files), read_ahead, n_lines)
        return
    transducer = models.load(n_lines)
    if not texts and not files and sys.stdin.isatty():
        sys.stderr.write("Type text, one line at a time. Press Ctrl-D to end.\n")
        read_ahead = 1
    if form.stream:
        printer = DraftPrinter()
        for line in read(texts, files):
            with naming_lines(partial(_place, [line])):
                printer.write(transducer.stream(line.text, prefix=form.prefix, **wanted))
    else:
        _print(job, transducer, growing_groups(read(texts, files), read_ahead), n_lines)


def _check(texts: Sequence[str], files: Sequence[Path], output: Path | None) -> None:
    if texts and files:
        raise ConfigError("texts and --input cannot be combined")
    if output is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("several ranks cannot share standard output: give --output FILE")


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


def _print(
    job: "TranslationJob",
    transducer: "Transducer",
    groups: Iterable[list[Line]],
    n_lines: int | None,
) -> None:
    """Translate and print lines, one group at a time."""
    number, cut = 0, list[str]()
    with ProgressBar("lines", n_lines, results_to_stdout=True) as bar:
        for lines in groups:
            watch = partial(bar.share, len(lines))
            for text in job.translate(transducer, lines, number, cut, watch):
                write_line(text)
            number += len(lines)
            sys.stdout.buffer.flush()
            bar.advance(len(lines))
    _warn_of_truncation(cut)


@dataclass(frozen=True)
class TranslationJob:
    """The model and settings for all lines."""

    models: Translators
    wanted: dict[str, Any]
    sampling: Sampling | None
    form: OutputFormat

    def translate(
        self,
        transducer: "Transducer",
        lines: Sequence[Line],
        first: int,
        cut: list[str],
        watch: Watch = no_progress,
    ) -> Iterator[str]:
        """Translate lines and yield lines of output. `first` is the number of the first line.

        The locations of lines whose translation reached the maximum length are appended to `cut`.
        """
        options: Options = {
            "alignments": self.form.alignments,
            "prefix": self.form.prefix,
            "sampling": self.sampling,
            "watch": watch,
        }
        results = _translate(transducer, lines, self.wanted, options)
        for number, result in enumerate(results, start=first):
            if not result.outputs[0].finished:
                cut.append(lines[number - first].place)
            yield from _result_lines(result, number, self.wanted["n_best"], self.form)


def _translate_in_parts(
    job: TranslationJob,
    output: Path,
    sources: tuple[Sequence[str], Sequence[Path]],
    size: int,
    n_lines: int | None,
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
        n_parts = _translate_parts(parts, job, read(texts, files), size, n_lines)
        parts.join(n_parts)


def _translate_parts(
    parts: "Parts", job: TranslationJob, everything: Iterator[Line], size: int, n_lines: int
) -> int:
    """Write this rank's parts, and return the total number of parts."""
    transducer, number, cut = job.models.load(n_lines), 0, list[str]()
    with ProgressBar("lines", n_lines, results_to_stdout=False) as bar:
        while lines := list(islice(everything, size)):
            if parts.is_mine(number):
                watch = partial(bar.share, len(lines))
                results = job.translate(transducer, lines, number * size, cut, watch)
                parts.put(number, "".join(f"{text}\n" for text in results).encode())
            number += 1
            bar.advance(len(lines))
    _warn_of_truncation(cut)
    return number


def _warn_of_truncation(places: Sequence[str]) -> None:
    """Warn about truncated translations, which are easily overlooked in a long file."""
    if places:
        complain(
            f"warning: {counted(len(places), 'translation')} reached the maximum length, the first "
            f"at {places[0]}; see --max-length-extra"
        )


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
    from transept.api.texts import TooLongError

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
        "outputs": [
            {key: value for key, value in asdict(one).items() if key != "alignment" or alignments}
            for one in result.outputs
        ],
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
