"""Fetches a public corpus into a directory: downloads, checks, unpacks and splits it.

    OUTPUT/train.en  train.de  dev.en  dev.de  test.en  test.de    one sentence per line
    OUTPUT/dataset.json                                            description; written last
    OUTPUT/downloads/                                              the archives, and SHA256SUMS

If no published checksum is known, the first download is trusted and its sha256 is written to
SHA256SUMS. A file that later differs from it is rejected.
"""

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from transept.data.fetching.archives import unpack
from transept.data.fetching.datasets import Archive, Dataset, DatasetPart, KeepAll
from transept.data.fetching.download import PAUSES, DownloadError, download
from transept.data.fetching.markup import sentences
from transept.errors import Argument, DataError
from transept.progress import Watch, no_progress
from transept.runtime.storage import digest, flush, write_file, write_json
from transept.text.files import read_lines

DOWNLOADS = "downloads"
CHECKSUMS = "SHA256SUMS"
DONE = "dataset.json"
ABOUT = "ABOUT.txt"

Trust = Literal["published", "recorded earlier", "first use"]
"""Where the checksum that an archive was compared with comes from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """The contents of the output directory. `trust` is empty if it was already complete."""

    directory: Path
    pairs: dict[str, int]
    trust: dict[str, Trust]


def _silent(name: str) -> Watch:
    return no_progress


def fetch(
    dataset: Dataset,
    output: Path,
    *,
    source: Path | None = None,
    mirror: str | None = None,
    watch: Callable[[str], Watch] = _silent,
    pauses: Sequence[float] = PAUSES,
) -> Fetched:
    """Write the files of `dataset` to `output`, downloading missing archives.

    Args:
        dataset: One of `transept.data.fetching.datasets.DATASETS`.
        output: The directory to fill.
        source: A directory that already holds the archives; nothing is downloaded.
        mirror: The URL of a directory with the archives under their usual names, to download
            from instead.
        watch: Called with the name of each downloaded file; returns its `Watch`.
        pauses: Seconds to wait before each retry of a failed download.
    """
    if (already := _fetched(dataset, output)) is not None:
        return Fetched(directory=output, pairs=already, trust={})
    output.mkdir(parents=True, exist_ok=True)
    downloads = output / DOWNLOADS
    downloads.mkdir(exist_ok=True)
    checksums = _read_checksums(downloads / CHECKSUMS)
    files: dict[Archive, Path] = {}
    trust: dict[str, Trust] = {}
    for archive in dataset.archives:
        path = (source or downloads) / archive.name
        if not path.exists():
            if source is not None:
                raise DataError(_missing(dataset, source))
            _download(dataset, archive, path, mirror, watch(archive.name), pauses)
        trust[archive.name] = _check(archive, path, checksums)
        files[archive] = path
    pairs = _cut(dataset, files, output)
    # Record checksums only now: a file that could not be unpacked must not become trusted.
    _write_checksums(downloads / CHECKSUMS, checksums)
    _write_description(dataset, pairs, checksums, output)
    return Fetched(directory=output, pairs=pairs, trust=trust)


def _fetched(dataset: Dataset, output: Path) -> dict[str, int] | None:
    """Return the pairs per split if `output` already holds this dataset, otherwise None."""
    try:
        done = json.loads((output / DONE).read_bytes())
        name: str = done["name"]
        pairs: dict[str, int] = done["pairs"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if name != dataset.name:
        raise DataError(
            f"{output} holds {name}; choose another ", Argument("output"), f" for {dataset.name}"
        )
    names = [f"{split}.{language}" for split in pairs for language in dataset.languages]
    return pairs if all((output / name).exists() for name in names) else None


# --- archives --------------------------------------------------------------------------------


def _download(
    dataset: Dataset,
    archive: Archive,
    path: Path,
    mirror: str | None,
    watch: Watch,
    pauses: Sequence[float],
) -> None:
    url = archive.url if mirror is None else f"{mirror.rstrip('/')}/{archive.name}"
    try:
        download(url, path, watch=watch, pauses=pauses)
    except DownloadError as error:
        raise DataError(
            f"{archive.name} cannot be downloaded.\n{error}\n"
            "The downloaded part is kept; try again to resume. Without an internet "
            "connection, download on another machine and give that directory as ",
            Argument("source"),
            f":\n{_addresses(dataset)}",
        ) from error


def _missing(dataset: Dataset, source: Path) -> str:
    absent = [archive for archive in dataset.archives if not (source / archive.name).exists()]
    names = ", ".join(archive.name for archive in absent)
    return f"{source} lacks {names}; {dataset.name} needs:\n{_addresses(dataset)}"


def _addresses(dataset: Dataset) -> str:
    return "\n".join(f"  {archive.url}" for archive in dataset.archives)


def _check(archive: Archive, path: Path, checksums: dict[str, str]) -> Trust:
    """Compare a file with its known checksums, and add its sha256 to `checksums`."""
    sha256 = digest(path)
    if archive.sha256 is not None and archive.sha256 != sha256:
        raise DataError(_mismatch(path, "sha256", archive.sha256, "published for it"))
    if archive.md5 is not None and archive.md5 != digest(path, "md5"):
        raise DataError(_mismatch(path, "md5", archive.md5, "published for it"))
    earlier = checksums.get(archive.name)
    if earlier is not None and earlier != sha256:
        origin = f"recorded in {CHECKSUMS} by an earlier fetch"
        raise DataError(_mismatch(path, "sha256", earlier, origin))
    checksums[archive.name] = sha256
    if archive.sha256 or archive.md5:
        return "published"
    return "recorded earlier" if earlier else "first use"


def _mismatch(path: Path, kind: str, expected: str, origin: str) -> str:
    return (
        f"{path} is not the expected file: its {kind} is not {expected}, the one {origin}. "
        "If it was truncated or altered, delete it and fetch again"
    )


def _read_checksums(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name: value for value, _, name in (line.partition("  ") for line in lines) if name}


def _write_checksums(path: Path, checksums: dict[str, str]) -> None:
    """Write checksums in the format of `sha256sum --check`."""
    lines = [f"{value}  {name}\n" for name, value in checksums.items()]
    write_file(path, "".join(lines).encode())


# --- splits ----------------------------------------------------------------------------------


def _cut(dataset: Dataset, files: dict[Archive, Path], output: Path) -> dict[str, int]:
    """Write the files of every split into `output`; return the number of pairs in each."""
    work = output / ".work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        staged = _stage(dataset, files, work)
        with _SplitFiles(work, dataset.languages) as splits:
            for split, sources in dataset.splits.items():
                rule = dataset.held_out if split == "train" else KeepAll(split)
                for parts in sources:
                    for index, pair in enumerate(_pairs(parts, staged)):
                        splits.add(rule.split_of(index, pair[0]), pair)
        for name in splits.names:
            flush(work / name)
            (work / name).replace(output / name)
        if dataset.about:
            staged[dataset.about].replace(output / ABOUT)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return dict(splits.counts)


def _stage(dataset: Dataset, files: dict[Archive, Path], work: Path) -> dict[DatasetPart, Path]:
    """Unpack the needed members under generated names. Plain files are read in place."""
    staged: dict[DatasetPart, Path] = {}
    for archive, path in files.items():
        wanted: dict[str, Path] = {}
        for part in dataset.parts:
            if part.archive != archive:
                continue
            if part.member is None:
                staged[part] = path
                continue
            suffix = ".gz" if part.member.endswith(".gz") else ""
            own_name = f"member-{len(staged)}{suffix}"
            staged[part] = wanted.setdefault(part.member, work / own_name)
        if wanted:
            unpack(path, wanted)
    return staged


def _pairs(
    parts: tuple[DatasetPart, DatasetPart], staged: dict[DatasetPart, Path]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the sentences of both sides, which must be equal in number."""
    columns = [sentences(read_lines(staged[part]), part.reading) for part in parts]
    for number, (source, target) in enumerate(itertools.zip_longest(*columns)):
        if source is None or target is None:
            longer, shorter = (parts[0], parts[1]) if target is None else (parts[1], parts[0])
            raise DataError(
                f"{longer.name} has more sentences than {shorter.name}, which ends after "
                f"{number:,}: they are not line-by-line translations of each other"
            )
        yield source, target


class _SplitFiles:
    """The output files, opened when the first pair of their split arrives."""

    def __init__(self, directory: Path, languages: tuple[str, str]) -> None:
        self.counts: Counter[str] = Counter()
        self._directory = directory
        self._languages = languages
        self._files: dict[str, tuple[IO[bytes], ...]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "_SplitFiles":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def names(self) -> list[str]:
        return [f"{split}.{language}" for split in self.counts for language in self._languages]

    def add(self, split: str, pair: tuple[bytes, bytes]) -> None:
        if split not in self._files:
            self._files[split] = tuple(
                self._stack.enter_context((self._directory / f"{split}.{language}").open("wb"))
                for language in self._languages
            )
        for file, sentence in zip(self._files[split], pair, strict=True):
            file.write(sentence + b"\n")
        self.counts[split] += 1


def _write_description(
    dataset: Dataset, pairs: dict[str, int], checksums: dict[str, str], output: Path
) -> None:
    description: dict[str, Any] = {
        "name": dataset.name,
        "title": dataset.title,
        "terms": dataset.terms,
        "languages": dataset.languages,
        "pairs": pairs,
        "archives": {
            archive.name: {"url": archive.url, "sha256": checksums[archive.name]}
            for archive in dataset.archives
        },
    }
    write_json(output / DONE, description)
