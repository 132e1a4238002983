"""A prepared corpus: a directory of memory-mapped ids.

    manifest.json                    counts, settings, sha256 of each file and of the corpus
    source.ids      target.ids       the concatenated ids of all sentences; each ends with EOS
    source.offsets  target.offsets   the start of each sentence, and the end of the last
    tokenizer/      [target_tokenizer/]
    dropped.tsv                      file, line, reason and detail of each dropped pair

Ids are little-endian uint16, or uint32 for vocabularies of more than 65,535; offsets are uint64.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transept import config
from transept.data.cleaning import Cleaning
from transept.data.config import SubwordSampling
from transept.errors import ConfigError, DataError, VocabularyError
from transept.runtime.storage import Stored, digest, sealed, unsealed, write_file
from transept.text.symbols import load_vocabulary
from transept.text.variation import Variation

FORMAT = 1
MANIFEST = "manifest.json"
DROPPED = "dropped.tsv"
SIDES = ("source", "target")
IDS = {side: f"{side}.ids" for side in SIDES}
OFFSETS = {side: f"{side}.offsets" for side in SIDES}
TOKENIZER = "tokenizer"
TARGET_TOKENIZER = "target_tokenizer"

Ids = NDArray[np.uint16] | NDArray[np.uint32]
Width = Literal["uint16", "uint32"]

OFFSET_TYPE = np.dtype("<u8")
CURE = "copy it again or prepare the corpus again"
STREAM = -1
"""The recorded size of standard input and other pipes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InputRecord:
    """An input as recorded in the manifest, with the sizes of its files (-1: a pipe)."""

    format: str
    paths: tuple[str, ...]
    bytes: tuple[int, ...]
    options: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All settings that determine the contents of a corpus."""

    inputs: tuple[InputRecord, ...]
    source_tokenizer: str
    target_tokenizer: str
    cleaning: Cleaning
    sampling: SubwordSampling | None = None
    """None if the subwords are not sampled."""
    variation: Variation | None = None
    """None if the pairs are not changed."""
    languages: tuple[str, str] | None = None
    """The languages of the variation. None if there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextRecord:
    """Identifies the text of the inputs."""

    checksums: tuple[int, ...]
    """The checksum of each column of each non-empty input."""
    modified: tuple[int, ...]
    """Modification time of each file in nanoseconds (-1: a pipe). If a time differs, the file may
    just have been copied, so its text is read and the checksums are compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SideSummary:
    """Statistics of one side of a corpus. Tokens include the EOS of each sentence."""

    tokens: int
    unknown: int
    vocab_size: int
    dtype: Width


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """The contents of `manifest.json`."""

    format: int
    hash: str
    read: int
    pairs: int
    dropped: dict[str, int]
    source: SideSummary
    target: SideSummary
    settings: Settings
    files: dict[str, Stored]
    text: TextRecord | None = None
    """The text that was read. None in corpora of the first versions."""

    @property
    def copies(self) -> int:
        """How often each kept pair is in the corpus."""
        sampling = self.settings.sampling
        return 1 if sampling is None else sampling.copies

    def side(self, name: str) -> SideSummary:
        """Return the statistics of `source` or `target`."""
        return self.source if name == "source" else self.target

    def save(self, directory: Path) -> None:
        """Write the manifest atomically."""
        write_file(directory / MANIFEST, sealed(config.as_table(self)))

    @classmethod
    def load(cls, directory: Path) -> "Manifest":
        """Read the manifest; raise DataError if the directory is not a usable corpus."""
        path = directory / MANIFEST
        try:
            table = unsealed(path.read_bytes())
            found = table.get("format")
        except FileNotFoundError as error:
            raise DataError(
                f"{directory} is not a prepared corpus (no {MANIFEST}); "
                "create one with `transept data prepare`"
            ) from error
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); {CURE}") from error
        except ValueError as error:
            raise DataError(f"{path} is damaged ({error}); prepare the corpus again") from error
        if found != FORMAT:
            raise DataError(
                f"{path} has format {found}, but this version reads format {FORMAT}; "
                "prepare the corpus again with this version"
            )
        try:
            return config.structure(cls, table)
        except ConfigError as error:
            raise DataError(f"{path} is damaged: {error}; prepare the corpus again") from error


class Corpus:
    """Memory-mapped pairs of sentences as ids. Opening is fast for any size."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest
        self._ids: dict[str, Ids] = {}
        self._offsets: dict[str, NDArray[np.uint64]] = {}
        for side in SIDES:
            summary = manifest.side(side)
            self._ids[side] = _mapped(directory / IDS[side], id_type(summary.dtype))
            self._offsets[side] = offsets = _mapped(directory / OFFSETS[side], OFFSET_TYPE)
            if len(offsets) != manifest.pairs + 1 or offsets[-1] != len(self._ids[side]):
                raise DataError(
                    f"{directory / OFFSETS[side]} and {IDS[side]} do not match; "
                    "prepare the corpus again"
                )

    @classmethod
    def open(cls, directory: Path | str, *, verify: bool = False) -> "Corpus":
        """Open a corpus that `transept data prepare` wrote.

        Args:
            directory: The prepared corpus.
            verify: Read all files, and compare each file's sha256 with the manifest and the
                vocabularies with those the corpus was prepared with. Otherwise only sizes are
                compared, which detects a truncated file but not an altered one.
        """
        directory = Path(directory)
        manifest = Manifest.load(directory)
        for name, stored in manifest.files.items():
            _check_file(directory / name, stored, verify)
        corpus = cls(directory, manifest)
        if verify:
            settings = manifest.settings
            _check_vocabulary(corpus.source_tokenizer, settings.source_tokenizer)
            _check_vocabulary(corpus.target_tokenizer, settings.target_tokenizer)
        return corpus

    def __len__(self) -> int:
        return self.manifest.pairs

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        # The receiving process maps the files itself instead of unpickling their contents.
        return Corpus.open, (self.directory,)

    def __repr__(self) -> str:
        return f"Corpus({str(self.directory)!r}, pairs={len(self):,})"

    @property
    def hash(self) -> str:
        """A hash of ids and offsets: equal hashes mean equal sentences in the same order."""
        return self.manifest.hash

    def source(self, index: int) -> Ids:
        """Return the ids of source sentence `index`, ending with EOS."""
        return self._sentence("source", index)

    def target(self, index: int) -> Ids:
        """Return the ids of target sentence `index`, ending with EOS."""
        return self._sentence("target", index)

    @cached_property
    def source_lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each source sentence, including EOS."""
        return self._lengths("source")

    @cached_property
    def target_lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each target sentence, including EOS."""
        return self._lengths("target")

    @property
    def source_tokenizer(self) -> Path:
        """The directory of the source tokenizer."""
        return self.directory / TOKENIZER

    @property
    def target_tokenizer(self) -> Path:
        """The directory of the target tokenizer, usually the source tokenizer."""
        own = self.directory / TARGET_TOKENIZER
        return own if own.exists() else self.source_tokenizer

    def _lengths(self, side: str) -> NDArray[np.int64]:
        offsets = self._offsets[side].view(np.int64)
        return offsets[1:] - offsets[:-1]

    def _sentence(self, side: str, index: int) -> Ids:
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} is out of range for a corpus of {len(self)} pairs")
        start, stop = self._offsets[side][index : index + 2].tolist()
        return self._ids[side][start:stop]


def width_for(vocab_size: int) -> Width:
    """Return the narrowest integer type that holds every id."""
    return "uint16" if vocab_size < 1 << 16 else "uint32"


def id_type(width: Width) -> np.dtype[Any]:
    """Return the dtype of ids on disk."""
    return np.dtype(width).newbyteorder("<")


def corpus_hash(files: Mapping[str, Stored]) -> str:
    """Return the hash of a corpus, computed from the hashes of its id and offset files."""
    contents = [files[name].sha256 for side in SIDES for name in (IDS[side], OFFSETS[side])]
    return hashlib.sha256("\n".join(contents).encode()).hexdigest()


def _mapped(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype=kind)
    # A plain array view: slicing the memmap subclass takes five times as long.
    return np.memmap(path, dtype=kind, mode="r").view(np.ndarray)


def _check_file(path: Path, expected: Stored, verify: bool) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise DataError(f"{path} is missing ({error.strerror}); {CURE}") from error
    if size != expected.bytes:
        raise DataError(f"{path} has {size:,} bytes instead of {expected.bytes:,}; {CURE}")
    if verify and digest(path) != expected.sha256:
        raise DataError(f"{path} was altered: its sha256 differs from {MANIFEST}; {CURE}")


def _check_vocabulary(directory: Path, expected: str) -> None:
    try:
        found = load_vocabulary(directory).sha256
    except VocabularyError as error:
        raise DataError(f"the corpus's vocabulary cannot be used: {error}; or {CURE}") from error
    if found != expected:
        raise DataError(f"{directory} is not the vocabulary of the ids next to it; {CURE}")
