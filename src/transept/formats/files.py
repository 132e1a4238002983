"""Read files of other toolkits. An error names the file."""

import json
import re
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from transept.errors import CheckpointError, DataError, VocabularyError

MAX_BYTES = 8 << 30
"""The maximum size of an unpacked archive. Translation models are smaller."""
MAX_RATIO = 20
"""The maximum ratio of the sizes of an archive, unpacked and packed. Weights hardly shrink."""
MAX_MEMBERS = 10_000
"""The maximum number of files in an archive."""
MAX_SHARING = 4
"""The maximum ratio of the sizes of a model's tensors and of its file. Names may share a tensor:
the three embedding matrices of a model often are one."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    value = read_json_value(path)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: is not a JSON object; use another copy")
    return value


def read_json_value(path: Path) -> Any:
    """Read any JSON value."""
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: is not JSON ({error}); use another copy") from error


def read_text(path: Path) -> str:
    """Read a text in UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 ({error}); use another copy") from error


def read_bytes(path: Path) -> bytes:
    """Read a whole file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error


def read_sentencepiece(path: Path) -> bytes:
    """Read a sentencepiece model, and check that sentencepiece can use it."""
    model = read_bytes(path)
    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        for index in range(processor.get_piece_size()):
            processor.id_to_piece(index)  # damaged ones are not UTF-8
    except (RuntimeError, UnicodeDecodeError) as error:
        raise VocabularyError(f"{path}: is not a sentencepiece model; use another copy") from error
    return model


def check_entries(entries: Sequence[str], rows: int, path: Path) -> None:
    """Reject a vocabulary that is ambiguous, or not that of an embedding matrix.

    Args:
        entries: The entries in the order of their ids.
        rows: The number of rows of the embedding matrix.
        path: The file of the vocabulary.
    """
    if len(entries) != rows:
        raise DataError(
            f"{path}: has {len(entries):,} entries, and the embedding matrix has {rows:,} rows: "
            "the files are not of one model"
        )
    seen: set[str] = set()
    for entry in entries:
        if entry in seen:
            raise VocabularyError(f"{path}: has the entry {entry!r} twice; use another copy")
        if _SURROGATE.search(entry):
            raise VocabularyError(f"{path}: the entry {entry!r} is not Unicode; use another copy")
        seen.add(entry)


def check_archive(path: Path) -> list[zipfile.ZipInfo]:
    """The members of a zip archive. Zip bombs and archives with ambiguous names are rejected."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        packed = path.stat().st_size
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error) as error:
        raise CheckpointError(f"{path}: is damaged ({error}); use another copy") from error
    total = sum(member.file_size for member in members)
    if total > min(MAX_BYTES, MAX_RATIO * max(packed, 1 << 20)):
        raise CheckpointError(
            f"{path}: {packed:,} bytes would unpack to {total:,}, too many for a model"
        )
    if len(members) > MAX_MEMBERS:
        raise CheckpointError(f"{path}: has {len(members):,} files, too many for a model")
    seen: set[str] = set()
    for member in members:
        if member.filename in seen:
            raise CheckpointError(f"{path}: has {member.filename!r} twice; use another copy")
        if member.compress_type not in _METHODS:
            what = f"is compressed with method {member.compress_type}, which is not supported"
            raise CheckpointError(f"{path}: {member.filename!r} {what}")
        seen.add(member.filename)
    return members
