"""Reading line-aligned files."""

import gzip
import lzma
from pathlib import Path

import pytest
import zstandard

from transept.errors import ConfigError, DataError
from transept.evaluation.reading import language_of, read_aligned


def test_read_aligned_keeps_lines_unchanged(tmp_path: Path) -> None:
    text = "\ufeffein\u2028s \r\n\nzwei\u0085drei".encode()
    files = {
        "a.de": text,
        "b.de.gz": gzip.compress(text),
        "c.de.xz": lzma.compress(text),
        "d.de.zst": zstandard.ZstdCompressor().compress(text),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    texts = read_aligned([tmp_path / name for name in files])
    assert texts == [["ein\u2028s \r", "", "zwei\u0085drei"]] * 4


def test_read_aligned_reports_different_numbers_of_lines(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\n" * 1200)
    two.write_text("a\n" * 1201)
    with pytest.raises(DataError, match=f"{one} has 1,200, {two} has 1,201"):
        read_aligned([one, two])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read"),
        (b"", "is empty"),
        (b"fine\n\xff\xd8\xff", "line 2: byte 1 .0xff. is not UTF-8"),
        (b"fine\nM\0Z\0\n", "line 2: has a NUL byte"),
    ],
)
def test_read_aligned_rejects_bad_files(
    tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "bad"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"{path}.*{complaint}"):
        read_aligned([path])


def test_read_aligned_rejects_standard_input_given_twice() -> None:
    with pytest.raises(ConfigError, match="only once"):
        read_aligned([Path("/dev/stdin"), Path("-")])


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("test.de", "de"),
        ("test.de.gz", "de"),
        ("en-de/test.fr.en", "en"),
        ("test.cs", "other"),
        ("de", "other"),
        ("/dev/stdin", "other"),
    ],
)
def test_language_of_file_is_its_suffix(name: str, language: str) -> None:
    assert language_of(Path(name)) == language
