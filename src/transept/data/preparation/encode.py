"""Turns a chunk of raw rows into ids: decode, parse, clean, vary, tokenize. Runs in any process.

Which pairs are kept, and which are duplicates, is decided on the text before it is varied. Finding
duplicates depends on other chunks. It is left to the caller, which gets a hash per pair.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress

import numpy as np
from numpy.typing import NDArray

from transept.data.cleaning import Cleaning, Dropped, Reason
from transept.data.config import SubwordSampling
from transept.data.preparation.duplicates import Hashes, pair_hash
from transept.data.preparation.formats import Chunk, CorpusInput
from transept.data.shards import SIDES, Ids, id_type, width_for
from transept.errors import Argument, DataError
from transept.text.files import describe
from transept.text.sampling import SubwordSampler
from transept.text.symbols import Symbols, Vocabulary
from transept.text.tokenizer import EOS_ID
from transept.text.variation import Pair, Variation


@dataclass(frozen=True, slots=True)
class EncodedSide:
    """Concatenated sentences, each ending with EOS, and their lengths."""

    ids: Ids
    lengths: NDArray[np.int64]

    def select(self, mask: NDArray[np.bool_]) -> "EncodedSide":
        """Return the sentences selected by the mask."""
        return EncodedSide(self.ids[np.repeat(mask, self.lengths)], self.lengths[mask])


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """An encoded chunk: the kept pairs with their line numbers, and the dropped rows.

    If subwords are sampled, each side has several copies of the pairs, one after the other.
    """

    name: str
    n_rows: int
    lines: NDArray[np.int64]
    source: EncodedSide
    target: EncodedSide
    hashes: Hashes
    dropped: list[Dropped]


class ChunkEncoder:
    """Turns chunks into ids. Picklable, to be sent to worker processes."""

    def __init__(
        self,
        inputs: Sequence[CorpusInput],
        source: Vocabulary,
        target: Vocabulary,
        cleaning: Cleaning,
        sampling: SubwordSampling | None = None,
        variation: Variation | None = None,
        languages: Pair = ("", ""),
    ) -> None:
        self._inputs = tuple(inputs)
        self._source = source
        self._target = target
        self._cleaning = cleaning
        self._variation = variation
        self._languages = languages
        self._n_copies = 1 if sampling is None else sampling.copies
        self._samplers = {
            name: _sampler(name, vocabulary, sampling)
            for name, vocabulary in zip(SIDES, (source, target), strict=True)
        }

    def encode(self, chunk: Chunk) -> EncodedChunk:
        """Encode a chunk independently of all others."""
        work = _Work(self._inputs[chunk.input], chunk, self._cleaning)
        work.parse()
        rows = work.rows
        sources = [work.source[row] for row in rows]
        targets = [work.target[row] for row in rows]
        source_ids = self._source.encode_batch(sources)
        target_ids = self._target.encode_batch(targets)
        keep = work.fits(rows, _lengths(source_ids), _lengths(target_ids))
        pairs = [*compress(zip(sources, targets, strict=True), keep)]
        copies = [*self._copies(pairs)]
        return EncodedChunk(
            name=describe(self._inputs[chunk.input].paths[0]),
            n_rows=len(chunk),
            lines=chunk.lines[np.array(rows, dtype=np.int64)[keep]],
            source=self._side("source", copies, dict(zip(sources, source_ids, strict=True))),
            target=self._side("target", copies, dict(zip(targets, target_ids, strict=True))),
            hashes=_hashes(pairs if self._cleaning.drop_duplicates else ()),
            dropped=[work.dropped[row] for row in sorted(work.dropped)],
        )

    def _copies(self, pairs: Sequence[Pair]) -> Iterator[Sequence[Pair]]:
        """The texts of each copy of the kept pairs."""
        for copy in range(self._n_copies):
            if self._variation is None:
                yield pairs
            else:
                vary = replace(self._variation, seed=self._variation.seed + copy)
                yield [vary(pair, self._languages) for pair in pairs]

    def _side(
        self, name: str, copies: Sequence[Sequence[Pair]], known: dict[str, list[int]]
    ) -> EncodedSide:
        """One side of the kept pairs, its copies one after the other.

        The length of sampled subwords and of a varied text does not decide on whether a pair is
        kept.

        Args:
            name: The name of the side.
            copies: The pairs of each copy.
            known: The ids of the texts as they were read. Most copies have the same texts, so only
                the others are encoded here.
        """
        side, sampler = SIDES.index(name), self._samplers[name]
        vocabulary = (self._source, self._target)[side]
        sentences: list[list[int]] = []
        for copy, pairs in enumerate(copies):
            texts = [pair[side] for pair in pairs]
            new = [text for text in texts if text not in known]
            known.update(zip(new, vocabulary.encode_batch(new), strict=True))
            ids = [known[text] for text in texts]
            sentences += ids if sampler is None else sampler.sample(texts, ids, copy)
        return _concatenated(sentences, vocabulary.vocab_size)


def _sampler(
    side: str, vocabulary: Vocabulary, sampling: SubwordSampling | None
) -> SubwordSampler | None:
    """The sampler of a side. None if its subwords are not sampled; a symbol has only one id."""
    if sampling is None or isinstance(vocabulary, Symbols) or sampling.sides not in ("both", side):
        return None
    return SubwordSampler(vocabulary, sampling.subword_dropout, sampling.seed)


class _Work:
    """A chunk being encoded: its sentences, and the rows dropped so far."""

    def __init__(self, source: CorpusInput, chunk: Chunk, cleaning: Cleaning) -> None:
        self.source: list[str] = []
        self.target: list[str] = []
        self.dropped: dict[int, Dropped] = {}
        self._input = source
        self._chunk = chunk
        self._cleaning = cleaning

    @property
    def rows(self) -> list[int]:
        """The rows that are not dropped."""
        return [row for row in range(len(self._chunk)) if row not in self.dropped]

    def parse(self) -> None:
        """Turn bytes into sentences, dropping unreadable and empty rows."""
        columns = [self._decode(index) for index in range(len(self._chunk.columns))]
        found = self._input.sentences(columns)
        for row, detail in found.malformed.items():
            if row not in self.dropped:  # rows that could not be decoded are already reported
                fatal = self._cleaning.malformed == "stop"
                self._bad(row, 0, Reason.MALFORMED, detail, fatal=fatal)
        self.source = [self._text(row, 0, text) for row, text in enumerate(found.source)]
        self.target = [self._text(row, 1, text) for row, text in enumerate(found.target)]
        if self._cleaning.drop_empty:
            for row, pair in enumerate(zip(self.source, self.target, strict=True)):
                if not all(pair):
                    side = "both sides" if not any(pair) else "target" if pair[0] else "source"
                    self._drop(row, 0, Reason.EMPTY, side)

    def fits(
        self, rows: list[int], source: NDArray[np.int64], target: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which of these rows pass the limits on length and length ratio."""
        cleaning = self._cleaning
        longest = np.maximum(source, target)
        ratio = longest / np.minimum(source, target)
        limits = (
            (Reason.LONG, longest, cleaning.max_tokens, "{:.0f} tokens"),
            (Reason.RATIO, ratio, cleaning.max_ratio, "{:.1f} to 1"),
        )
        keep = np.ones(len(rows), dtype=np.bool_)
        for reason, values, limit, phrase in limits:
            beyond = keep & (values > limit) if limit else np.zeros_like(keep)
            for index in np.flatnonzero(beyond):
                self._drop(rows[index], 0, reason, phrase.format(values[index]))
            keep &= ~beyond
        return keep

    def _decode(self, column: int) -> list[str]:
        raw = self._chunk.columns[column]
        try:
            return raw.decode("utf-8").split("\n")
        except UnicodeDecodeError:  # rare, so lines are decoded one by one only now
            return [
                self._decode_line(row, column, line) for row, line in enumerate(raw.split(b"\n"))
            ]

    def _decode_line(self, row: int, column: int, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            if self._cleaning.bad_encoding == "replace":
                return line.decode("utf-8", errors="replace")
            detail = f"byte {error.start + 1} is 0x{line[error.start]:02x}"
            fatal = self._cleaning.bad_encoding == "stop"
            self._bad(row, column, Reason.ENCODING, detail, fatal=fatal)
            return ""

    def _text(self, row: int, side: int, text: str) -> str:
        """Return a sentence without surrounding white space and NUL characters."""
        if "\0" not in text:
            return text.strip()
        if self._cleaning.bad_encoding == "replace":
            return text.replace("\0", "\ufffd").strip()
        detail = f"character {text.index(chr(0)) + 1} of the {SIDES[side]} is NUL"
        fatal = self._cleaning.bad_encoding == "stop"
        column = min(side, len(self._input.paths) - 1)
        self._bad(row, column, Reason.ENCODING, detail, fatal=fatal)
        return ""

    def _bad(self, row: int, column: int, reason: Reason, detail: str, *, fatal: bool) -> None:
        self._drop(row, column, reason, detail)
        if fatal:
            bad = self.dropped[row]
            raise DataError(
                f"{bad.path}, line {bad.line}: {reason.meaning} ({detail}); fix the file, or "
                "drop such lines with ",
                Argument("malformed" if reason is Reason.MALFORMED else "bad_encoding"),
                " drop",
            )

    def _drop(self, row: int, column: int, reason: Reason, detail: str) -> None:
        if row not in self.dropped:
            path = describe(self._input.paths[column])
            self.dropped[row] = Dropped(path, int(self._chunk.lines[row]), reason, detail)


def _lengths(sentences: Sequence[list[int]]) -> NDArray[np.int64]:
    """Return lengths including the EOS that will be added."""
    return np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences)) + 1


def _concatenated(sentences: Sequence[list[int]], vocab_size: int) -> EncodedSide:
    lengths = _lengths(sentences)
    ids = chain.from_iterable((*each, EOS_ID) for each in sentences)
    flat = np.fromiter(ids, dtype=id_type(width_for(vocab_size)), count=int(lengths.sum()))
    return EncodedSide(flat, lengths)


def _hashes(pairs: Iterable[Pair]) -> Hashes:
    joined = b"".join(pair_hash(source, target) for source, target in pairs)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)
