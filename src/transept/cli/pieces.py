"""`transept pieces`: directories in pieces, for when only small files can be moved."""

import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.progress import ProgressBar
from transept.errors import ConfigError
from transept.pieces import Compression
from transept.wording import counted

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
SIZE = re.compile(r"([0-9.]+)\s*([KMG]I?)?B?")


def split(
    directory: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    size: str = "60MiB",
    compression: Compression = "auto",
    name: str | None = None,
) -> None:
    """Write a directory as pieces of a given size, with their sha256.

    It may be a prepared corpus, a model, a checkpoint or anything else, and stays as it is.

    Args:
        directory: What to split.
        output: Where the pieces go.
        size: The size of the largest piece, such as 60MiB or 16MB.
        compression: auto is zstd where a sample shrinks by it, else none; xz is slow and small.
        name: What the pieces are called; unless given, the name of the directory.
    """
    from transept import pieces

    n_bytes = _bytes(size)
    with _bar() as bar:
        listing = pieces.split(
            directory,
            output,
            size=n_bytes,
            compression=compression,
            name=name,
            watch=lambda done, total: bar.share(100, done, total),
        )
    before = sum(stored.bytes for stored in listing.files.values())
    after = sum(stored.bytes for stored in listing.pieces.values())
    packed = "as they are" if listing.compression == "none" else f"by {listing.compression}"
    sys.stdout.write(
        f"{output}: {counted(len(listing.files), 'file')} of {before / 1e6:,.1f} MB in "
        f"{counted(len(listing.pieces), 'piece')} of {after / 1e6:,.1f} MB, {packed}\n"
    )


def join(
    *places: Annotated[Path, Parameter(required=True)],
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
) -> None:
    """Put pieces together again, every one and every file verified.

    Args:
        places: The directories in which the pieces and their list lie.
        output: The directory to make.
    """
    from transept import pieces

    with _bar() as bar:
        listing = pieces.join(places, output, watch=lambda done, total: bar.share(100, done, total))
    total = sum(stored.bytes for stored in listing.files.values())
    sys.stdout.write(
        f"{output}: {counted(len(listing.files), 'file')} of {total / 1e6:,.1f} MB from "
        f"{counted(len(listing.pieces), 'piece')}, all verified\n"
    )


def _bar() -> ProgressBar:
    return ProgressBar("percent", 100, results_to_stdout=False)


def _bytes(text: str) -> int:
    """`60MiB` as a number."""
    found = SIZE.fullmatch(text.strip().upper())
    try:
        n_bytes = int(float(found[1]) * UNITS[found[2] or ""]) if found else 0
    except ValueError:
        n_bytes = 0
    if n_bytes < 1024:
        raise ConfigError(f"--size {text}: is no size of at least 1 KiB; try 60MiB")
    return n_bytes
