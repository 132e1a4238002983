"""Writes the files of a corpus."""

import itertools
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from transept.data.cleaning import Dropped, Reason
from transept.data.preparation.duplicates import SeenPairs
from transept.data.preparation.encode import EncodedChunk, EncodedSide
from transept.data.preparation.formats import Chunk
from transept.data.preparation.journal import JournalState, reopen
from transept.data.shards import (
    DROPPED,
    FORMAT,
    IDS,
    OFFSET_TYPE,
    OFFSETS,
    SIDES,
    TARGET_TOKENIZER,
    TOKENIZER,
    Manifest,
    Settings,
    SideSummary,
    TextRecord,
    corpus_hash,
    id_type,
    width_for,
)
from transept.errors import Argument, DataError
from transept.runtime.storage import Stored, flush
from transept.text.symbols import Vocabulary
from transept.text.tokenizer import UNK_ID

CORPUS = "corpus"
SEEN = "seen"
HEADER = b"file\tline\treason\tdetail\n"


class CorpusWriter:
    """Appends encoded chunks to the files under `directory`, after the end recorded in `state`."""

    def __init__(
        self,
        directory: Path,
        settings: Settings,
        tokenizers: Mapping[str, Vocabulary],
        state: JournalState,
    ) -> None:
        self.state = state
        self._directory = directory
        self._corpus = directory / CORPUS
        self._settings = settings
        self._tokenizers = tokenizers
        self._copies = 1 if settings.sampling is None else settings.sampling.copies
        self._corpus.mkdir(exist_ok=True)
        begun = state.report_bytes > 0
        sizes = {DROPPED: state.report_bytes}
        for side in SIDES:
            sizes[IDS[side]] = state.tokens[side] * self._id_type(side).itemsize
            sizes[OFFSETS[side]] = (state.pairs + 1) * OFFSET_TYPE.itemsize if begun else 0
        with ExitStack() as stack:
            self._files = {
                name: stack.enter_context(reopen(self._corpus / name, size))
                for name, size in sizes.items()
            }
            self._seen = None
            if settings.cleaning.drop_duplicates:
                self._seen = SeenPairs(directory / SEEN, state.pairs // self._copies)
                stack.callback(self._seen.close)
            self._stack = stack.pop_all()
        if not begun:
            self._begin()

    def __enter__(self) -> "CorpusWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self, chunk: Chunk, encoded: EncodedChunk) -> None:
        """Write the kept pairs of a chunk and report the dropped ones."""
        sides = {"source": encoded.source, "target": encoded.target}
        dropped = encoded.dropped
        n_pairs = len(encoded.lines)
        if self._seen is not None:
            new = self._seen.add(encoded.hashes)
            n_pairs = int(np.count_nonzero(new))
            if n_pairs < len(new):
                chosen = np.tile(new, self._copies)
                sides = {name: side.select(chosen) for name, side in sides.items()}
                repeated = encoded.lines[~new].tolist()
                dropped = dropped + [
                    Dropped(encoded.name, line, Reason.DUPLICATE) for line in repeated
                ]
                dropped.sort(key=lambda drop: drop.line)
        for name, side in sides.items():
            self._append(name, side)
        self._report(dropped)
        self.state.pairs += n_pairs * self._copies
        self.state.rows += encoded.n_rows
        self.state.chunks += 1
        self.state.checksum = chunk.checksum(self.state.checksum)

    def sync(self) -> None:
        """Flush all files and their directory entries to disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        if self._seen is not None:
            os.fsync(self._seen.fileno())
        for directory in (self._corpus, self._directory):
            flush(directory)

    def finish(self, output: Path, text: TextRecord) -> Manifest:
        """Complete the corpus prepared from this text, and rename it to `output`."""
        state = self.state
        if state.pairs == 0:
            raise DataError(*self._nothing_kept())
        for name in (TOKENIZER, TARGET_TOKENIZER):  # an interrupted `finish` may have left them
            shutil.rmtree(self._corpus / name, ignore_errors=True)
        self._tokenizers["source"].save(self._corpus / TOKENIZER)
        if self._settings.source_tokenizer != self._settings.target_tokenizer:
            self._tokenizers["target"].save(self._corpus / TARGET_TOKENIZER)
        names = [name for side in SIDES for name in (IDS[side], OFFSETS[side])]
        files = {name: Stored.of(self._corpus / name) for name in names}
        manifest = Manifest(
            format=FORMAT,
            hash=corpus_hash(files),
            read=state.rows,
            pairs=state.pairs,
            dropped=state.dropped,
            source=self._summary("source"),
            target=self._summary("target"),
            settings=self._settings,
            files=files,
            text=text,
        )
        manifest.save(self._corpus)
        self._corpus.replace(output)
        flush(output.parent)
        shutil.rmtree(self._directory, ignore_errors=True)
        return manifest

    def _begin(self) -> None:
        for side in SIDES:
            self._files[OFFSETS[side]].write(np.zeros(1, dtype=OFFSET_TYPE).tobytes())
        self.state.report_bytes += self._files[DROPPED].write(HEADER)

    def _append(self, name: str, side: EncodedSide) -> None:
        offsets = np.cumsum(side.lengths) + self.state.tokens[name]
        self._files[IDS[name]].write(side.ids.tobytes())
        self._files[OFFSETS[name]].write(offsets.astype(OFFSET_TYPE).tobytes())
        self.state.tokens[name] += len(side.ids)
        self.state.unknown[name] += int(np.count_nonzero(side.ids == UNK_ID))

    def _report(self, dropped: list[Dropped]) -> None:
        counts = Counter(self.state.dropped)
        counts.update(drop.reason.value for drop in dropped)
        self.state.dropped = {reason.value: counts[reason] for reason in Reason if counts[reason]}
        # File names need not be UTF-8.
        lines = "".join(f"{drop}\n" for drop in dropped).encode(errors="surrogateescape")
        self.state.report_bytes += self._files[DROPPED].write(lines)

    def _summary(self, side: str) -> SideSummary:
        vocab_size = self._tokenizers[side].vocab_size
        return SideSummary(
            tokens=self.state.tokens[side],
            unknown=self.state.unknown[side],
            vocab_size=vocab_size,
            dtype=width_for(vocab_size),
        )

    def _id_type(self, side: str) -> "np.dtype[np.unsignedinteger]":
        return id_type(width_for(self._tokenizers[side].vocab_size))

    def _nothing_kept(self) -> tuple[str | Argument, ...]:
        if self.state.rows == 0:
            return ("the inputs are empty; there is nothing to prepare",)
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.state.dropped.items())
        report = self._corpus / DROPPED
        self._files[DROPPED].flush()
        with report.open(encoding="utf-8", errors="surrogateescape") as file:
            first = next(itertools.islice(file, 1, None))
        path, line, reason, detail = first.rstrip("\n").split("\t")
        why = f"{Reason(reason).meaning}: {detail}" if detail else Reason(reason).meaning
        return (
            f"none of the {self.state.rows:,} pairs was kept ({reasons}); the first is {path}, "
            f"line {line}: {why}. All are listed in {report}. Fix the input, or change how "
            "it is read (",
            Argument("columns"),
            ", ",
            Argument("keys"),
            ", ",
            Argument("languages"),
            ") and what is dropped",
        )
