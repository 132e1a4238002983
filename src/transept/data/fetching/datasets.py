"""The public corpora that `transept data fetch` knows, as `datasets.toml` lists them."""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

Reading = Literal["lines", "segments", "talks", "first column", "second column"]
"""How to find the sentences of a file. Implemented in `transept.data.fetching.markup`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """A file to download, stored under the last component of its URL."""

    url: str
    sha256: str | None = None
    md5: str | None = None

    @property
    def name(self) -> str:
        """The file name."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """Sentences of one language: a member of an archive, or a whole file."""

    archive: Archive
    member: str | None
    reading: Reading = "lines"

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.archive.name}:{self.member}" if self.member else self.archive.name


class Rule(Protocol):
    """Decides which split a training pair goes to."""

    def split_of(self, index: int, source: bytes) -> str:
        """Return the split of pair number `index` (from 0) with this source sentence."""


@dataclass(frozen=True, slots=True)
class KeepAll:
    """Every pair belongs to one split."""

    split: str = "train"

    def split_of(self, index: int, source: bytes) -> str:
        """Return the same split for every pair."""
        return self.split


@dataclass(frozen=True, slots=True)
class EveryNth:
    """Holds out one pair in `n` as dev, by number, as is usual for IWSLT 2014."""

    n: int

    def split_of(self, index: int, source: bytes) -> str:
        """Return dev for the n-th, 2n-th, … pair."""
        return "dev" if (index + 1) % self.n == 0 else "train"


@dataclass(frozen=True, slots=True)
class ByHash:
    """Holds out one source sentence in `n` as dev and one as test, with all translations.

    Selecting by hash rather than by number holds out the same sentences in later, longer
    editions of the corpus.
    """

    n: int

    def split_of(self, index: int, source: bytes) -> str:
        """Return a split that depends only on the source sentence."""
        digest = hashlib.sha256(source).digest()
        bucket = int.from_bytes(digest[:8], "big") % self.n
        return {0: "dev", 1: "test"}.get(bucket, "train")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A parallel corpus: the pairs of files of each split, in order."""

    name: str
    title: str
    languages: tuple[str, str]
    splits: dict[str, tuple[tuple[DatasetPart, DatasetPart], ...]]
    held_out: Rule = KeepAll()
    about: DatasetPart | None = None
    terms: str

    @property
    def parts(self) -> tuple[DatasetPart, ...]:
        """All files and members, of all splits."""
        parts = [part for pairs in self.splits.values() for pair in pairs for part in pair]
        return (*parts, self.about) if self.about else tuple(parts)

    @property
    def archives(self) -> tuple[Archive, ...]:
        """The files to download, without duplicates."""
        return tuple(dict.fromkeys(part.archive for part in self.parts))


DatasetName = Literal[
    "wmt14-en-de",
    "wmt14-en-fr",
    "europarl-en-de",
    "europarl-en-fr",
    "iwslt14-de-en",
    "multi30k-en-de",
    "tatoeba-en-de",
]


def _datasets(table: dict[str, Any]) -> "dict[DatasetName, Dataset]":
    """Build the datasets from `datasets.toml`, which explains its entries."""
    archives = {name: Archive(**archive) for name, archive in table["archives"].items()}

    def part(entry: list[str], language: str = "", role: str = "", column: str = "") -> DatasetPart:
        archive, *inside = (text.format(language=language, role=role) for text in entry)
        member = inside[0] if inside else None
        reading = inside[1] if len(inside) > 1 else "lines"
        return DatasetPart(
            archives[archive], member, cast(Reading, column if reading == "columns" else reading)
        )

    def dataset(name: str, entry: dict[str, Any]) -> Dataset:
        source, target = entry["languages"]
        sides = ((source, "src", "first column"), (target, "ref", "second column"))
        splits = {
            split: tuple((part(files, *sides[0]), part(files, *sides[1])) for files in pairs)
            for split, pairs in entry["splits"].items()
        }
        rules = [RULES[rule](n) for rule, n in entry.get("held_out", {}).items()]
        return Dataset(
            name=name,
            title=entry["title"],
            languages=(source, target),
            splits=splits,
            held_out=rules[0] if rules else KeepAll(),
            about=part(entry["about"]) if "about" in entry else None,
            terms=entry["terms"],
        )

    entries = table["datasets"].items()
    return {name: dataset(name, entry) for name, entry in entries}


RULES: dict[str, type[EveryNth] | type[ByHash]] = {"by_number": EveryNth, "by_hash": ByHash}
DATASETS = _datasets(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")))
