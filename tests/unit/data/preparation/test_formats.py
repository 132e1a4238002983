import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import zstandard

from transept.data.preparation import formats
from transept.data.preparation.formats import Chunk, CorpusInput, Jsonl, LinePair, Tmx, Tsv, chunks
from transept.errors import DataError
from transept.progress import Tally


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def pairs(source: CorpusInput) -> list[tuple[str, str]]:
    found = []
    for chunk in chunks([source]):
        columns = [column.decode().split("\n") for column in chunk.columns]
        both = source.sentences(columns)
        found += list(zip(both.source, both.target, strict=True))
    return found


def malformed(source: CorpusInput) -> dict[int, str]:
    (chunk,) = chunks([source])
    return source.sentences([column.decode().split("\n") for column in chunk.columns]).malformed


class TestLinePair:
    def test_reads_line_by_line(self, tmp_path: Path) -> None:
        source = LinePair(write(tmp_path / "x.en", "a\nb\n"), write(tmp_path / "x.de", "c\nd"))
        assert pairs(source) == [("a", "c"), ("b", "d")]

    def test_only_a_newline_ends_a_line(self, tmp_path: Path) -> None:
        text = "a\u2028b\x0bc\x85d\n"
        source = LinePair(write(tmp_path / "x.en", text), write(tmp_path / "x.de", "e\n"))
        assert pairs(source) == [("a\u2028b\x0bc\x85d", "e")]

    @pytest.mark.parametrize(("n_source", "n_target"), [(2, 5), (5, 2), (0, 3)])
    def test_unequal_line_counts(self, tmp_path: Path, n_source: int, n_target: int) -> None:
        english = write(tmp_path / "x.en", "a\n" * n_source)
        german = write(tmp_path / "x.de", "b\n" * n_target)
        message = rf"x\.en has {n_source} lines and .*x\.de has {n_target}"
        with pytest.raises(DataError, match=message):
            list(chunks([LinePair(english, german)]))

    def test_byte_order_mark_is_dropped(self, tmp_path: Path) -> None:
        english = write(tmp_path / "x.en", b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
        source = LinePair(english, write(tmp_path / "x.de", "c\nd\n"))
        assert pairs(source) == [("a", "c"), ("\ufeffb", "d")]

    def test_compressed_files(self, tmp_path: Path) -> None:
        text = b"eins\nzwei\n"
        packed = {
            "x.gz": gzip.compress(text),
            "x.xz": lzma.compress(text),
            "x.zst": zstandard.compress(text),
        }
        plain = write(tmp_path / "x", text)
        for name, content in packed.items():
            source = LinePair(write(tmp_path / name, content), plain)
            assert pairs(source) == [("eins", "eins"), ("zwei", "zwei")]


class TestTsv:
    def test_columns(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.tsv", "1\ta\tb\n2\tc\td\te\n")
        assert pairs(Tsv(path, (2, 3))) == [("a", "b"), ("c", "d")]
        assert pairs(Tsv(path, (3, 1))) == [("b", "1"), ("d", "2")]

    def test_too_few_columns(self, tmp_path: Path) -> None:
        assert malformed(Tsv(write(tmp_path / "x.tsv", "a\tb\nalone\n"))) == {1: "1 of 2 columns"}


class TestJsonl:
    def test_keys(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.jsonl", json.dumps({"source": "ä", "target": "b\nc"}) + "\n")
        assert pairs(Jsonl(path)) == [("ä", "b c")]

    def test_keys_inside_objects(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.jsonl", '{"translation": {"en": "a", "de": "b"}}\n')
        assert pairs(Jsonl(path, ("translation.en", "translation.de"))) == [("a", "b")]

    @pytest.mark.parametrize(
        ("line", "fault"),
        [
            ("{", "Expecting property name"),
            ("[1, 2]", "no key 'source'"),
            ('{"source": "a"}', "no key 'target'"),
            ('{"source": "a", "target": 3}', "'target' is not a string"),
            (r'{"source": "a", "target": "\ud800"}', "surrogates not allowed"),
            ("[" * 100_000, "recursion"),
            ("", "Expecting value"),
        ],
    )
    def test_malformed_lines_are_reported(self, tmp_path: Path, line: str, fault: str) -> None:
        good = '{"source": "a", "target": "b"}'
        found = malformed(Jsonl(write(tmp_path / "x.jsonl", f"{good}\n{line}\n{good}\n")))
        assert list(found) == [1]
        assert fault in found[1]


def test_tmx_units_have_line_numbers(tmp_path: Path) -> None:
    unit = '<tu>\n<tuv xml:lang="en"><seg>a</seg></tuv>\n<tuv xml:lang="de"><seg>b</seg></tuv></tu>'
    text = f"<tmx><body>\n{unit}\n{unit}\n</body></tmx>"
    (chunk,) = chunks([Tmx(write(tmp_path / "x.tmx", text), ("en", "de"))])
    assert chunk.lines.tolist() == [2, 5]
    assert chunk.columns == (b"a\na", b"b\nb")


class TestChunks:
    def test_cut_by_rows_and_by_bytes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(formats, "CHUNK_ROWS", 4)
        monkeypatch.setattr(formats, "CHUNK_BYTES", 100)
        lines = ["x"] * 9 + ["y" * 99 + "\tz"] + ["x"] * 3
        path = write(tmp_path / "x.tsv", "\n".join(lines) + "\n")
        found = list(chunks([Tsv(path), Tsv(path)]))
        assert [len(chunk) for chunk in found] == [4, 4, 2, 3] * 2
        assert [chunk.input for chunk in found] == [0] * 4 + [1] * 4
        assert found[2].lines.tolist() == [9, 10]

    def test_nothing_is_read_ahead(self, tmp_path: Path) -> None:
        bad = Tsv(tmp_path / "missing.tsv")
        stream = chunks([Tsv(write(tmp_path / "x.tsv", "a\tb\n")), bad])
        assert len(next(stream)) == 1
        with pytest.raises(DataError, match="missing"):
            next(stream)

    def test_bytes_are_counted_before_decompression(self, tmp_path: Path) -> None:
        path = write(tmp_path / "x.tsv.xz", lzma.compress(b"a\tb\n" * 5000))
        tally = Tally()
        list(chunks([Tsv(path)], tally))
        assert tally.done == path.stat().st_size

    def test_checksum_continues_across_chunks(self) -> None:
        one = Chunk(0, np.arange(2), (b"a\nb", b"c\nd"))
        two = Chunk(0, np.arange(1), (b"e", b"f"))
        assert two.checksum(one.checksum(0)) != one.checksum(two.checksum(0))
