"""`transept translate`: text in, text out, line for line."""

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    Files,
    Line,
    check_uncompressed,
    count,
    in_turn,
    read,
    told_too_long,
    without_dash,
)
from transept.cli.models import ANY_TRANSLATOR, MODEL_OPTIONS, Translators
from transept.cli.options import given, remembers_given
from transept.cli.progress import ProgressBar
from transept.decoding.config import BeamConfig, OutputConfig, SamplingConfig
from transept.errors import ConfigError, StoppedError
from transept.runtime.interrupt import import_torch, terminable
from transept.wording import counted

if TYPE_CHECKING:
    from transept.api.texts import Output, Translation
    from transept.api.transducer import Transducer
    from transept.runtime.parts import Parts


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """What is read besides arguments."""

    files: Files = ()
    """UTF-8 text; .gz, .xz and .zst are read too. Several are read one after another."""
    read_ahead: int = 512
    """How many lines to read before they are translated together. More is quicker; 1 answers each
    line at once, and is what a terminal gets."""

    def __post_init__(self) -> None:
        if self.read_ahead < 1:
            raise ConfigError("--read-ahead must be at least 1")


@remembers_given
@dataclass(frozen=True, kw_only=True)
class Beam(BeamConfig):
    """How to search. Sampling does not use these options."""


@dataclass(frozen=True, kw_only=True)
class SampleFlag:
    """Whether to draw at random. A base class, so that it is the first option of its group."""

    sample: Flag = False
    """Draw each translation at random instead of searching for the best. --n-best N draws N
    translations of each line. Only the native engine does this, and it ignores --shortlist."""


@remembers_given
@dataclass(frozen=True, kw_only=True)
class Sampling(SamplingConfig, SampleFlag):
    """Drawing at random instead of searching."""

    def __post_init__(self) -> None:
        if not self.sample and given(self).keys() - {"sample"}:
            raise ConfigError("--temperature, --top-k, --top-p and --seed need --sample")
        super().__post_init__()

    def config(self) -> SamplingConfig | None:
        """How to draw, if at all."""
        return self if self.sample else None


@dataclass(frozen=True, kw_only=True)
class OutputFormat:
    """What is printed."""

    scores: Flag = False
    """Put each translation's score, and a tab, in front of it."""
    alignments: Flag = False
    """Put ` ||| ` behind each translation, and which source word belongs to which translated word:
    `0-0 1-2`. Words are what stands between spaces, counted from 0."""
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False
    """Print one JSON object a line, with everything that is known."""
    stream: Flag = False
    """Print each translation while it grows. A terminal shows what may still change in dim
    letters; a pipe gets only what is certain. Only the native engine does this."""
    prefix: str | None = None
    """Text that every translation shall begin with. Lines are then not split into sentences."""


PAPERS, NO_SAMPLING, USUAL, WHOLE = Beam(), Sampling(), OutputConfig(), ReadingConfig()
STANDARD_INPUT, PLAIN = InputOptions(), OutputFormat()
INPUT = Parameter(name="*", group=Group("InputOptions", sort_key=0))
SEARCH = Parameter(name="*", group=Group("Search", sort_key=2))
SAMPLING = Parameter(name="*", group=Group("Sampling", sort_key=3))
OUTPUT = Group("Output", sort_key=4)


def translate(
    *texts: str,
    source: Annotated[InputOptions, INPUT] = STANDARD_INPUT,
    reading: Annotated[ReadingConfig, INPUT] = WHOLE,
    models: Annotated[Translators, MODEL_OPTIONS] = ANY_TRANSLATOR,
    beam: Annotated[Beam, SEARCH] = PAPERS,
    sampling: Annotated[Sampling, SAMPLING] = NO_SAMPLING,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=OUTPUT)] = None,
    form: Annotated[OutputFormat, Parameter(name="*", group=OUTPUT)] = PLAIN,
    outputs: Annotated[OutputConfig, Parameter(name="*", group=OUTPUT)] = USUAL,
) -> None:
    """Translate text, files or standard input, line for line.

    An empty line stays an empty line. A line of several sentences is translated sentence by
    sentence, and keeps its white space. With --n-best above 1, lines are in the form of Moses:
    `number ||| translation ||| LogP= log-probability ||| score`, numbers counting from 0. The
    score is log P / lp, with the length penalty lp of Wu et al.; a line of several sentences has
    the sum of their scores.

    With --output, results go to a file, part by part: after an interruption, the same command goes
    on where it was. torchrun shares the parts out among GPUs and machines that see that file:
    `torchrun --nproc-per-node 8 -m transept translate --input FILE --output FILE`.

    Args:
        texts: What to translate; without any, files or standard input are read. Write `--` before
            texts that begin with a dash.
        source: What to read.
        reading: How to take text apart.
        models: Which model to use.
        beam: How to search.
        sampling: How to draw.
        output: Write here, instead of to standard output.
        form: What to print.
        outputs: How many translations, and how long.
    """
    files, read_ahead = source.files, source.read_ahead
    _check(texts, files, output)
    texts = without_dash(texts)
    if form.stream:
        _refuse_with_stream(outputs, sampling, form)
    wanted = _wanted(beam, sampling, asdict(outputs) | asdict(reading))
    for option, is_given in {"--stream": form.stream, "--sample": sampling.sample}.items():
        models = models.native(option) if is_given else models
    n_lines = count(texts, files)
    import_torch()
    job = TranslationJob(models, wanted, sampling, form)
    if output is not None:
        _translate_in_parts(job, output, (texts, files), read_ahead, n_lines)
        return
    transducer = models.load(n_lines)
    if not texts and not files and sys.stdin.isatty():
        sys.stderr.write("Type text, a line at a time; Ctrl-D ends.\n")
        read_ahead = 1
    if form.stream:
        _stream(transducer, read(texts, files), wanted, form.prefix)
    else:
        _print(job, transducer, in_turn(read(texts, files), read_ahead), n_lines)


def _check(texts: Sequence[str], files: Sequence[Path], output: Path | None) -> None:
    if texts and files:
        raise ConfigError("give either texts or --input, not both")
    if output is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("several ranks cannot share standard output: give --output FILE")


def _wanted(beam: Beam, sampling: Sampling, others: dict[str, Any]) -> dict[str, Any]:
    """The options of a search, or those of a draw, which has no beam."""
    if not sampling.sample:
        return asdict(TranslationConfig(**asdict(beam), **others))
    if useless := [*given(beam)]:
        option = useless[0].replace("_", "-")
        raise ConfigError(f"--sample and --{option} do not go together; leave one out")
    return others


def _print(
    job: "TranslationJob",
    transducer: "Transducer",
    groups: Iterable[list[Line]],
    n_lines: int | None,
) -> None:
    """Translate lines as they come, each group of them together."""
    number, cut = 0, list[str]()
    with ProgressBar("lines", n_lines, results_to_stdout=True) as bar:
        for lines in groups:
            watch = partial(bar.share, len(lines))
            for text in job.translate(transducer, lines, number, cut, watch):
                write_line(text)
            number += len(lines)
            sys.stdout.buffer.flush()
            bar.advance(len(lines))
    _warn_of_cut(cut)


@dataclass(frozen=True)
class TranslationJob:
    """What is wanted of every line."""

    models: Translators
    wanted: dict[str, Any]
    sampling: Sampling
    form: OutputFormat

    def translate(
        self,
        transducer: "Transducer",
        lines: Sequence[Line],
        first: int,
        cut: list[str],
        watch: Callable[[int, int], None] | None = None,
    ) -> Iterator[str]:
        """The lines of results for some lines, the first of which has this number.

        To `cut` are added the places of lines whose translation did not come to an end.
        """
        options: Options = {
            "alignments": self.form.alignments,
            "prefix": self.form.prefix,
            "sampling": self.sampling.config(),
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
    """Translate this rank's parts of `size` lines each; when all ranks are done, join the parts."""
    from transept.checkpoint import weights_sha256
    from transept.runtime.device import take_own_gpu
    from transept.runtime.parts import Parts
    from transept.runtime.storage import digest

    texts, files = sources
    if job.form.stream or n_lines is None:
        raise ConfigError(
            "--output needs texts or --input with files that can be read again, and does not go "
            "with --stream"
        )
    check_uncompressed(output)
    parts = Parts.of(output)
    job = dataclasses.replace(job, models=job.models.found())
    settings = asdict(job) | {
        "lines": size,
        "texts": texts,
        "files": {str(path): digest(path) for path in files},
        "weights": [weights_sha256(Path(model)) for model in job.models.model],
    }
    if not parts.begin(settings):
        return
    take_own_gpu()
    with _saying_what_is_kept(parts.directory):
        n_parts = _make(parts, job, read(texts, files), size, n_lines)
        parts.join(n_parts)


def _make(
    parts: "Parts", job: TranslationJob, everything: Iterator[Line], size: int, n_lines: int
) -> int:
    """Make the parts that are this rank's, and say how many there are in all."""
    transducer, number, cut = job.models.load(n_lines), 0, list[str]()
    with ProgressBar("lines", n_lines, results_to_stdout=False) as bar:
        while lines := list(islice(everything, size)):
            if parts.is_mine(number):
                watch = partial(bar.share, len(lines))
                results = job.translate(transducer, lines, number * size, cut, watch)
                parts.put(number, "".join(f"{text}\n" for text in results).encode())
            number += 1
            bar.advance(len(lines))
    _warn_of_cut(cut)
    return number


def _warn_of_cut(places: Sequence[str]) -> None:
    """Say which translations are not whole: in a file of thousands nobody would see them."""
    if places:
        complain(
            f"warning: {counted(len(places), 'translation')} ended by the maximum length, the "
            f"first at {places[0]}; see --max-length-extra"
        )


@contextmanager
def _saying_what_is_kept(directory: Path) -> Iterator[None]:
    """Tell whoever stops a translation how it can go on."""
    try:
        with terminable():
            yield
    except KeyboardInterrupt:
        raise StoppedError(
            f"stopped. What is done is kept in {directory}; the same command goes on from there"
        ) from None


def _refuse_with_stream(outputs: OutputConfig, sampling: Sampling, form: OutputFormat) -> None:
    """Refuse options that need the whole translation, and --sample, which does not search."""
    unfit = {
        "--n-best": outputs.n_best > 1,
        "--scores": form.scores,
        "--alignments": form.alignments,
        "--json": form.as_json,
        "--sample": sampling.sample,
    }
    if wrong := [option for option, is_given in unfit.items() if is_given]:
        raise ConfigError(f"--stream and {', '.join(wrong)} do not go together; leave one out")


def _stream(
    transducer: "Transducer", lines: Iterable[Line], wanted: dict[str, Any], prefix: str | None
) -> None:
    from transept.cli.streaming import open_page, write_drafts

    page = open_page()
    for line in lines:
        with _told_by_line([line]):
            write_drafts(transducer.stream(line.text, prefix=prefix, **wanted), page)


def _translate(
    transducer: "Transducer", lines: Sequence[Line], wanted: dict[str, Any], options: Options
) -> "Iterator[Translation]":
    from transept.api.texts import TooLongError

    def translated(some: Sequence[Line]) -> "list[Translation]":
        texts = [line.text for line in some]
        return transducer.translate(texts, **options, **wanted)

    with _told_by_line(lines):
        try:
            yield from translated(lines)
        except TooLongError as error:
            yield from translated(lines[: error.number - 1])
            raise


@contextmanager
def _told_by_line(lines: Sequence[Line]) -> Iterator[None]:
    """A sentence that is too long is named by where it stands."""
    from transept.api.texts import TooLongError

    try:
        yield
    except TooLongError as error:
        raise told_too_long(lines[error.number - 1].place, error) from error


def _result_lines(
    result: "Translation", number: int, n_best: int, form: OutputFormat
) -> Iterator[str]:
    if form.as_json:
        yield json.dumps(_described(result, form.alignments), ensure_ascii=False)
        return
    for one in result.outputs:
        text = _line(one)
        links = f" ||| {one.pharaoh}" if form.alignments else ""
        if n_best > 1:
            log_p = f"LogP= {one.log_probability:.6f}"
            text = f"{number} ||| {text} ||| {log_p} ||| {one.score:.6f}"
        elif form.scores:
            text = f"{one.score:.6f}\t{text}"
        yield f"{text}{links}"


def _line(output: "Output") -> str:
    # A model can spell any byte, and a line must stay a line.
    return output.text.replace("\n", " ")


def _described(result: "Translation", alignments: bool) -> dict[str, Any]:
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
