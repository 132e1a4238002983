"""Properties of data preparation, for any text."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transept.data.cleaning import Cleaning, Reason
from transept.data.preparation.duplicates import SeenPairs
from transept.data.preparation.encode import ChunkEncoder
from transept.data.preparation.formats import Chunk, CorpusInput, Jsonl, LinePair, Tsv
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.preparation.tmx import read_units
from transept.data.shards import Corpus
from transept.errors import DataError
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer

# Realistic text: words, odd white space, direction and byte order marks, invalid bytes.
ODDITIES = ["the house", "grün", " ", "\t", "\r", "\u2028", "\u00a0", "\ufeff", "\u202e", "\0", "▁"]
text = st.lists(st.sampled_from(ODDITIES) | st.text(max_size=5), max_size=6).map("".join)
line = st.one_of(
    text.map(lambda value: value.replace("\n", " ").encode("utf-8", "replace")),
    st.binary(max_size=12).map(lambda value: value.replace(b"\n", b" ")),
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer") / "joint"
    train_tokenizer(["the house is grün and the tree is red"] * 5, vocab_size=290).save(path)
    return path


@pytest.fixture(scope="module")
def tokenizer(directory: Path) -> Tokenizer:
    return Tokenizer.load(directory)


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@given(rows=st.lists(st.tuples(line, line), min_size=1, max_size=12))
@settings(max_examples=100)
def test_cleaning_keeps_rows_unchanged_or_drops_them(
    tokenizer: Tokenizer, rows: list[tuple[bytes, bytes]]
) -> None:
    columns = tuple(b"\n".join(column) for column in zip(*rows, strict=True))
    chunk = Chunk(0, np.arange(len(rows)) + 100, columns)
    pair = LinePair(Path("x.en"), Path("x.de"))
    encoded = ChunkEncoder([pair], tokenizer, tokenizer, Cleaning(max_tokens=40)).encode(chunk)

    dropped = {drop.line for drop in encoded.dropped}
    kept = encoded.lines.tolist()
    assert sorted([*dropped, *kept]) == chunk.lines.tolist()
    assert not dropped & set(kept)
    for drop in encoded.dropped:
        sides = list(zip(pair.paths, rows[drop.line - 100], strict=True))
        wrong = [str(path) for path, raw in sides if not is_utf8(raw)]
        wrong += [str(path) for path, raw in sides if b"\0" in raw]
        assert (drop.reason is Reason.ENCODING) == bool(wrong)
        if wrong:
            assert drop.path == wrong[0]
    for index, side in enumerate((encoded.source, encoded.target)):
        ends = np.cumsum(side.lengths)
        for number, ids in zip(kept, np.split(side.ids, ends[:-1]) if kept else [], strict=True):
            assert tokenizer.decode(ids.tolist()) == rows[number - 100][index].decode().strip()
            assert len(ids) <= 40


@settings(max_examples=50)
@given(batches=st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=20), max_size=8))
def test_seen_pairs_behave_like_set(batches: list[list[int]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        seen = SeenPairs(Path(directory) / "seen")
        reference: set[int] = set()
        for batch in batches:
            new = seen.add(np.array(batch, dtype=np.uint64)).tolist()
            for value, is_new in zip(batch, new, strict=True):
                value = max(value, 1)
                assert is_new == (value not in reference)
                reference.add(value)
        assert len(seen) == len(reference)
        seen.close()


@given(rows=st.lists(line, min_size=1, max_size=20))
@settings(max_examples=15)
@pytest.mark.parametrize("kind", [Tsv, Jsonl])
def test_any_file_is_prepared_or_rejected(
    directory: Path, tokenizer: Tokenizer, kind: type[Tsv] | type[Jsonl], rows: list[bytes]
) -> None:
    good = {Tsv: b"the house\tgr\xc3\xbcn", Jsonl: b'{"source": "the house", "target": "red"}'}
    with tempfile.TemporaryDirectory() as directory_name:
        path = Path(directory_name) / "x"
        path.write_bytes(b"\n".join([*rows, good[kind]]) + b"\n")
        inputs: tuple[CorpusInput, ...] = (kind(path),)
        job = Preparation(
            inputs=inputs, tokenizer=directory, output=Path(directory_name) / "corpus"
        )
        try:
            manifest = prepare(job, workers=0)
        except DataError as refusal:
            # Hypothesis also tries constants from the code, such as magic bytes of archives.
            if "its first bytes show an archive" in str(refusal):
                return
            raise
        corpus = Corpus.open(job.output, verify=True)
        report = (job.output / "dropped.tsv").read_bytes().split(b"\n")[1:-1]
    assert manifest.read == len(rows) + 1
    assert manifest.pairs == len(corpus) == manifest.read - len(report)
    assert sum(manifest.dropped.values()) == len(report)
    texts = {
        (
            tokenizer.decode(corpus.source(index).tolist()),
            tokenizer.decode(corpus.target(index).tolist()),
        )
        for index in range(len(corpus))
    }
    assert len(texts) == len(corpus)


TAGS = [
    b"<tmx>", b"</tmx>", b"<body>", b"</body>", b"<tu>", b"</tu>", b"<tuv xml:lang='en'>",
    b"<tuv xml:lang='de-AT'>", b"</tuv>", b"<seg>", b"</seg>", b"<ph>", b"</ph>", b"text", b"&amp;",
    b"&x;", b"<!DOCTYPE tmx [", b"<!ENTITY x 'y'>", b"]>", b"<?xml version='1.0'?>", b"\n", b"\xff",
]  # fmt: skip


@given(pieces=st.lists(st.sampled_from(TAGS) | st.binary(max_size=4), max_size=40))
@settings(max_examples=200)
def test_any_bytes_are_read_as_tmx_or_rejected(pieces: list[bytes]) -> None:
    try:
        units = list(read_units(pieces, ("en", "de"), "x.tmx"))
    except DataError as error:
        message = str(error)
    else:
        message = "x.tmx, line "
        assert all("\n" not in unit.source + unit.target for unit in units)
    assert message.startswith("x.tmx, line ")
