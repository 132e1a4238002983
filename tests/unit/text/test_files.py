import bz2
import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from transept.errors import DataError
from transept.progress import Tally
from transept.text.files import decode_line, read_lines, read_raw_lines, read_text, stored_size

AWKWARD = "one\r\n\n two\u2028\u2029\x85\x0b\x0c\x1c \nthree\t\0\n\nlast".encode()
SKIPPABLE_FRAME = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"note"


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


def plain(content: bytes) -> bytes:
    return content


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".txt": plain,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstd,
}
ARCHIVES = [suffix for suffix in COMPRESSORS if suffix != ".txt"]


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_lines_end_only_at_newline(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESSORS[suffix](AWKWARD))
    assert list(read_lines(path)) == AWKWARD.split(b"\n")
    assert b"".join(read_raw_lines(path)) == AWKWARD
    assert list(read_text(path)) == AWKWARD.decode().split("\n")


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_final_newline_starts_no_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESSORS[suffix](b"a\n\n"))
    assert list(read_lines(path)) == [b"a", b""]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    assert list(read_lines(path)) == []


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_archives_of_several_parts_are_read_to_the_end(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESSORS[suffix]
    path = tmp_path / f"text{suffix}"
    path.write_bytes(compress(b"one\ntw") + compress(b"o\nthree"))
    assert list(read_lines(path)) == [b"one", b"two", b"three"]


def test_zstandard_skips_skippable_frames(tmp_path: Path) -> None:
    path = tmp_path / "text.zst"
    path.write_bytes(SKIPPABLE_FRAME + zstd(b"one\n") + SKIPPABLE_FRAME + zstd(b"two"))
    assert list(read_lines(path)) == [b"one", b"two"]


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_progress_counts_the_bytes_on_disk(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESSORS[suffix](b"a line of text\n" * 200_000))
    steps: list[int] = []
    tally = Tally(lambda done, total: steps.append(done))
    assert sum(1 for _ in read_lines(path, tally)) == 200_000
    assert steps[-1] == stored_size(path) == path.stat().st_size
    assert suffix != ".txt" or len(steps) > 2


@pytest.mark.parametrize("suffix", ARCHIVES)
@pytest.mark.parametrize("damage", ["cut short", "overwritten", "empty", "something else"])
def test_error_names_a_damaged_archive(tmp_path: Path, suffix: str, damage: str) -> None:
    sound = COMPRESSORS[suffix](bytes(range(256)) * 50 + b"\n" * 5000)
    middle = len(sound) // 2
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(
        {
            "cut short": sound[:-9],
            "overwritten": sound[:middle] + b"\0\xff\0\xff" + sound[middle + 4 :],
            "empty": b"",
            "something else": b"not an archive at all",
        }[damage]
    )
    with pytest.raises(DataError, match=rf"broken\{suffix}: .*damaged"):
        list(read_lines(path))


def test_error_names_an_unreadable_file(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.gz", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(DataError, match=why) as caught:
            list(read_lines(path))
        assert str(path) in str(caught.value)
        with pytest.raises(DataError, match=why):
            stored_size(path)


def test_error_names_the_line_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin1"
    path.write_bytes(b"fine\nna\xefve\n")
    complaint = r"latin1, line 2: byte 3 \(0xef\) is not UTF-8.* -f cp1252 "
    with pytest.raises(DataError, match=complaint):
        list(read_text(path))
    with pytest.raises(DataError, match="standard input, line 7"):
        decode_line(b"\x80", Path("-"), 7)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["UTF-16-LE", "UTF-16-BE", "UTF-32-LE", "UTF-32-BE"])
def test_utf_16_is_rejected_with_a_solution(tmp_path: Path, encoding: str, suffix: str) -> None:
    path = tmp_path / f"wide{suffix}"
    text = "\ufeffa house\n".encode(encoding)
    path.write_bytes(gzip.compress(text) if suffix else text)
    cure = f"iconv -f {encoding[:6]} -t UTF-8"
    with pytest.raises(DataError, match=cure) as caught:
        list(read_lines(path))
    assert str(path) in str(caught.value)
    if encoding != "UTF-32-BE":  # whose first bytes, two zeros, are UTF-8
        with pytest.raises(DataError, match=cure):
            decode_line(text.split(b"\n")[0], path, 1)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd)],
)
def test_archive_with_another_suffix_is_rejected_with_a_solution(
    suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (path := tmp_path / "text.en").write_bytes(compress(b"a house\n"))
    with pytest.raises(
        DataError, match=rf"text.en: its first bytes show an archive.* ends in \{suffix}$"
    ):
        list(read_text(path))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_archive_is_rejected_before_its_lines_are_counted(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(compress(b"one line\nand another\n"))
    with pytest.raises(DataError, match=r"text.en: its first bytes show an archive"):
        list(read_lines(path))


def test_bzip2_is_rejected_and_similar_text_is_not(tmp_path: Path) -> None:
    path = tmp_path / "text.bz2"
    path.write_bytes(bz2.compress(b"one line\n"))
    with pytest.raises(
        DataError, match=r"text.bz2: its first bytes show.* decompress it with `bunzip2`"
    ):
        list(read_text(path))
    path.write_text("BZh is an abbreviation.\n")
    assert list(read_text(path)) == ["BZh is an abbreviation."]


def test_dash_reads_standard_input() -> None:
    code = (
        "from pathlib import Path; from transept.text.files import read_lines, stored_size;"
        "print(list(read_lines(Path('-'))), stored_size(Path('-')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], input=b"a\r\n\nb", capture_output=True, check=True
    )
    assert run.stdout == b"[b'a\\r', b'', b'b'] None\n"


def test_pipe_has_no_size_and_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert stored_size(pipe) is None
