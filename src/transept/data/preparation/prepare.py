"""Prepares a corpus from raw text: in bounded memory, on all cores, and resumable.

This process reads, drops duplicates and writes, in input order. Workers parse and tokenize.
Progress is committed to `OUTPUT.partial` every few seconds. If a run is interrupted (Ctrl-C,
kill -9, a power failure), the next run with the same settings resumes it, and the result is the
same bit for bit.
"""

import itertools
import shutil
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from transept.data.cleaning import Cleaning
from transept.data.config import SubwordSampling
from transept.data.preparation.changes import changes
from transept.data.preparation.encode import ChunkEncoder, EncodedChunk
from transept.data.preparation.formats import Checksums, Chunk, CorpusInput, chunks
from transept.data.preparation.journal import Journal, JournalState, locked, partial_directory
from transept.data.preparation.writing import CorpusWriter
from transept.data.shards import MANIFEST, STREAM, InputRecord, Manifest, Settings, TextRecord
from transept.errors import Argument, ConfigError, DataError, Problem
from transept.progress import Tally, Watch, no_progress
from transept.runtime.workers import Workers, available_cores
from transept.text.files import describe, modification_time, stored_size
from transept.text.symbols import Symbols, Vocabulary, load_vocabulary
from transept.text.tokenizer import Tokenizer
from transept.text.variation import Variation

COMMIT_SECONDS = 2.0
REPLACED = "replaced"
CURE = ("\nChoose another ", Argument("output"), ", or replace it with ", Argument("restart"))
AHEAD = 3
"""Chunks submitted per worker, enough that none waits for reading or writing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Preparation:
    """The inputs and the output of a preparation."""

    inputs: tuple[CorpusInput, ...]
    tokenizer: Path
    target_tokenizer: Path | Vocabulary | None = None
    """A separate vocabulary for the target side, or its directory."""
    output: Path
    cleaning: Cleaning = field(default_factory=Cleaning)
    sampling: SubwordSampling | None = None
    variation: Variation | None = None
    """Changes to the pairs. The vocabularies must have masks."""
    languages: tuple[str, str] = ("", "")
    """The source and the target language of the variation, if they are known."""


def prepare(
    job: Preparation,
    *,
    workers: int | None = None,
    restart: bool = False,
    watch: Watch = no_progress,
    commit_seconds: float = COMMIT_SECONDS,
) -> Manifest:
    """Prepare a corpus, or resume one that was interrupted.

    Args:
        job: The inputs, the tokenizer, the output directory and the settings.
        workers: Number of processes that tokenize; 0 tokenizes in this process. Default: one per
            core.
        restart: Delete the output of an earlier run, finished or not.
        watch: Called after each chunk with the number of input bytes read.
        commit_seconds: Seconds between commits: the most work that an interruption can lose.
    """
    plan = _Plan.of(job)
    partial = partial_directory(job.output)
    finished = _finished(job.output, plan.settings, restart)
    if finished is not None:
        _check_text(job, plan, finished, watch)
        shutil.rmtree(partial, ignore_errors=True)
        return finished
    with locked(partial):
        journal = Journal(partial, plan.settings)
        if restart:
            journal.discard()
            _set_aside(job.output, partial)
        state = journal.load()
        reading = _Reading(job.inputs, state, partial, watch)
        with CorpusWriter(partial, plan.settings, plan.tokenizers, state) as writer:
            count = available_cores() if workers is None else workers
            with closing(_encoded(reading.rest(), plan.encoder, count)) as encoded:
                _run(reading, encoded, writer, journal, commit_seconds)
            if writer.state.pairs == 0:
                journal.discard()  # nothing to resume: the next run may have other settings
            checksums = reading.checksums.found
            text = TextRecord(checksums=checksums, modified=plan.modified)
            return writer.finish(job.output, text)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """The settings and objects derived from a job."""

    settings: Settings
    modified: tuple[int, ...]
    """Modification times of the files, taken before reading so that later changes are noticed."""
    tokenizers: dict[str, Vocabulary]
    encoder: ChunkEncoder

    @classmethod
    def of(cls, job: Preparation) -> "_Plan":
        source = Tokenizer.load(job.tokenizer)
        target = _target_vocabulary(job) or source
        settings = _settings(job, source, target)
        if job.variation is not None:
            _check_masks({"tokenizer": source, "target_tokenizer": target})
        return cls(
            settings=settings,
            modified=_modified(job),
            tokenizers={"source": source, "target": target},
            encoder=ChunkEncoder(
                job.inputs,
                source,
                target,
                job.cleaning,
                settings.sampling,
                settings.variation,
                job.languages,
            ),
        )


def _run(
    reading: "_Reading",
    encoded: Iterable[tuple[Chunk, EncodedChunk]],
    writer: CorpusWriter,
    journal: Journal,
    every: float,
) -> None:
    """Write the encoded rest of the input to disk, with regular commits."""

    def commit() -> None:
        writer.sync()
        journal.commit(writer.state)

    due = time.monotonic() + every
    for chunk, ids in encoded:
        writer.add(chunk, ids)
        reading.report()
        if time.monotonic() >= due:
            commit()
            due = time.monotonic() + every
    commit()


def _encoded(
    chunks: Iterator[Chunk], encoder: ChunkEncoder, workers: int
) -> Generator[tuple[Chunk, EncodedChunk], None, None]:
    """Yield each chunk with its ids.

    Workers encode them. A single chunk is encoded in this process before a worker would start.
    """
    first = list(itertools.islice(chunks, 2 if workers else 0))
    chunks, tasks = itertools.tee(itertools.chain(first, chunks))
    if workers == 0 or len(first) < 2:
        yield from zip(chunks, map(encoder.encode, tasks), strict=True)
        return
    work = [encoder.encode] * workers
    with Workers(work, "preparation worker", lambda encoded: encoded) as pool:
        yield from zip(chunks, pool.map(tasks, AHEAD * workers), strict=True)


class _Reading:
    """The inputs as chunks, and how much of them has been read."""

    def __init__(
        self,
        inputs: tuple[CorpusInput, ...],
        state: JournalState,
        partial: Path,
        watch: Watch,
    ) -> None:
        self._inputs = inputs
        self._state = state
        self._partial = partial
        self._watch = watch
        sizes = [size for each in inputs for size in _sizes(each)]
        self._tally = Tally(total=None if STREAM in sizes else sum(sizes))
        self.checksums = Checksums()

    def rest(self) -> Iterator[Chunk]:
        """Yield the chunks not yet processed. Earlier ones are read again to compare checksums."""
        stream = self._summed(chunks(self._inputs, self._tally))
        checksum = 0
        for chunk in itertools.islice(stream, self._state.chunks):
            checksum = chunk.checksum(checksum)
            self.report()
        if checksum != self._state.checksum:
            raise DataError(
                f"{self._partial} holds an unfinished preparation of other text: the inputs have "
                "changed; start from scratch with ",
                Argument("restart"),
            )
        yield from stream

    def _summed(self, stream: Iterator[Chunk]) -> Iterator[Chunk]:
        for chunk in stream:
            self.checksums.add(chunk)
            yield chunk

    def report(self) -> None:
        """Report how much has been read."""
        self._watch(self._tally.done, self._tally.total)


def _finished(output: Path, settings: Settings, restart: bool) -> Manifest | None:
    """Return the manifest if `output` already holds this corpus, or None if it must be prepared."""
    if not output.exists():
        return None
    if not (output / MANIFEST).exists():
        if output.is_dir() and not any(output.iterdir()):
            return None
        raise DataError(
            f"{output} exists and is not a prepared corpus; choose another ", Argument("output")
        )
    if restart:
        return None
    manifest = Manifest.load(output)
    changed = changes(manifest.settings, settings)
    if any(STREAM in each.bytes for each in settings.inputs):
        changed = (*changed, "\n  text from a pipe cannot be compared")
    if changed:
        raise DataError(f"{output} holds a corpus prepared with other settings:", *changed, *CURE)
    return manifest


def _check_text(job: Preparation, plan: _Plan, finished: Manifest, watch: Watch) -> None:
    """Reject a corpus whose inputs have changed, even if their size is the same."""
    before = finished.text
    if before is None or before.modified == plan.modified:
        return
    reading = _Reading(job.inputs, JournalState(), job.output, watch)
    for _ in reading.rest():
        reading.report()
    if reading.checksums.found != before.checksums:
        paths = (path for each in job.inputs for path in each.paths)
        times = zip(paths, before.modified, plan.modified, strict=True)
        newer = dict.fromkeys(describe(path) for path, old, new in times if old != new)
        raise DataError(
            f"{job.output} holds a corpus prepared from other text: {', '.join(newer)} has "
            "changed since",
            *CURE,
        )


def _set_aside(output: Path, partial: Path) -> None:
    """Move the old corpus away. It is removed when the new one is finished.

    Moving it now, not at the end, lets an interrupted restart resume like any other run.
    """
    if (output / MANIFEST).exists():
        shutil.rmtree(partial / REPLACED, ignore_errors=True)
        output.replace(partial / REPLACED)


def _target_vocabulary(job: Preparation) -> Vocabulary | None:
    given = job.target_tokenizer
    return load_vocabulary(given) if isinstance(given, Path) else given


def _check_masks(vocabularies: Mapping[str, Vocabulary]) -> None:
    """Reject a vocabulary without the symbols that a variation puts into the text."""
    for key, vocabulary in vocabularies.items():
        if isinstance(vocabulary, Symbols) or not vocabulary.masks:
            what = "has no masks, which a variation needs; train one with `masks`"
            raise ConfigError([Problem(key, what)])


def _settings(job: Preparation, source: Vocabulary, target: Vocabulary) -> Settings:
    """Return all settings that determine the contents of the corpus."""
    return Settings(
        inputs=tuple(_record(each) for each in job.inputs),
        source_tokenizer=source.sha256,
        target_tokenizer=target.sha256,
        cleaning=job.cleaning,
        sampling=job.sampling if job.sampling and job.sampling.subword_dropout else None,
        variation=job.variation,
        languages=None if job.variation is None else job.languages,
    )


def _record(each: CorpusInput) -> InputRecord:
    return InputRecord(
        format=each.format,
        paths=tuple(map(str, each.paths)),
        bytes=_sizes(each),
        options=each.options,
    )


def _sizes(each: CorpusInput) -> tuple[int, ...]:
    sizes = (stored_size(path) for path in each.paths)
    return tuple(STREAM if size is None else size for size in sizes)


def _modified(job: Preparation) -> tuple[int, ...]:
    times = (modification_time(path) for each in job.inputs for path in each.paths)
    return tuple(STREAM if time is None else time for time in times)
