"""Any text survives a round trip."""

import gzip
import lzma
import random
from pathlib import Path
from typing import get_args

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from transept.text.cutting import cut
from transept.text.files import read_lines, read_raw_lines
from transept.text.moses import Language
from transept.text.sentences import split_sentences
from transept.text.tokenizer import (
    BOS_ID,
    EOS_ID,
    ESCAPE,
    MARK,
    PAD_ID,
    SPACE_SYMBOL,
    UNK_ID,
    Kind,
    Tokenizer,
    escape,
    unescape,
)
from transept.text.training import train_tokenizer

LITERALS = [
    *("<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "<0x00>", "<0xE2>", "<0x96>", "<0x81>"),
    *("<0x", "0A>", "<", ">", "/", "⁇", " ⁇ ", "▁", "▁▁", "▅", MARK, ESCAPE, "ka", "lo", "mi"),
    *(" ", "  ", "\n", "\t", "\r", "\0", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffd"),
    *("\U0010ffff", "e\u0301", "½", "中文", "👩‍👧"),
]

awkward = st.lists(st.one_of(st.sampled_from(LITERALS), st.text(max_size=3))).map("".join)


@pytest.fixture(scope="module", params=get_args(Kind))
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer trained on text with many names of special tokens, which it might learn."""
    rng = random.Random(0)
    lines = ["".join(rng.choices(LITERALS, k=8)) for _ in range(4000)]
    return train_tokenizer(lines, vocab_size=500, kind=request.param, character_coverage=1)


@settings(max_examples=300)
@given(text=st.one_of(awkward, st.text()))
def test_text_round_trips(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {PAD_ID, EOS_ID, UNK_ID, BOS_ID} & set(ids)


@settings(max_examples=150)
@given(text=awkward)
def test_subwords_round_trip_through_line(tokenizer: Tokenizer, text: str) -> None:
    pieces = tokenizer.pieces(text)
    assert " ".join(pieces).split(" ") == (pieces or [""])
    assert tokenizer.decode_pieces(pieces) == text


@settings(max_examples=50)
@given(texts=st.lists(awkward))
def test_encoding_batch_equals_encoding_each_text(tokenizer: Tokenizer, texts: list[str]) -> None:
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


@settings(max_examples=100)
@given(ids=st.lists(st.integers(0, 499)))
def test_any_ids_decode_to_text(tokenizer: Tokenizer, ids: list[int]) -> None:
    tokenizer.decode(ids).encode("utf-8")


@given(text=st.one_of(awkward, st.text(alphabet=[SPACE_SYMBOL, MARK, ESCAPE, "a"])))
def test_escaping_is_lossless(text: str) -> None:
    assert SPACE_SYMBOL not in escape(text)
    assert unescape(escape(text)) == text


@settings(max_examples=200)
@given(text=st.one_of(awkward, st.text()))
def test_surfaces_concatenate_to_text(tokenizer: Tokenizer, text: str) -> None:
    surfaces = tokenizer.surfaces(tokenizer.encode(text))
    assert b"".join(surfaces).decode("utf-8") == (f" {escape(text)}" if text else "")


PROSE = ["Dr", "z. B", "U.S", "the", "Mai", "12", "a", "I", "你好", "と"]
MARKS = [*".!?…,;:。！？()[]\"'“”»«-–", "..", " ", "  ", "\n", "\r\n", "\u00a0", "\t"]
prose = st.lists(st.sampled_from(PROSE + MARKS), max_size=30).map("".join)


@settings(max_examples=500)
@given(text=st.one_of(prose, awkward, st.text()), language=st.sampled_from(get_args(Language)))
def test_sentences_concatenate_to_text(text: str, language: Language) -> None:
    pieces = split_sentences(text, language)
    assert "".join(map("".join, pieces)) == text
    assert all(piece.text.strip() == piece.text for piece in pieces)
    assert all(piece.text for piece in pieces[1:])
    assert not any(piece.space.strip() for piece in pieces)


@settings(max_examples=200)
@given(text=st.one_of(prose, awkward, st.text(max_size=60)), limit=st.integers(8, 20))
def test_split_parts_concatenate_to_text_and_fit(
    tokenizer: Tokenizer, text: str, limit: int
) -> None:
    pieces = cut(text.strip(), tokenizer, limit)
    assert "".join(map("".join, pieces)) == text.strip()
    assert all(len(tokenizer.encode(piece.text)) <= limit for piece in pieces)


any_bytes = st.one_of(st.binary(), st.lists(st.binary(max_size=9)).map(b"\n".join))
REFUSED = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff", b"\x1f\x8b", b"\xfd7zXZ\0", b"(\xb5/\xfd")
"""Magic bytes of UTF-16, UTF-32 and archives: `read_lines` rejects them; see other tests."""


@given(content=any_bytes.filter(lambda content: not content.startswith((*REFUSED, b"BZh"))))
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_file_bytes_round_trip(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes
) -> None:
    compressed = {
        "": lambda: content,
        ".gz": lambda: gzip.compress(content),
        ".xz": lambda: lzma.compress(content),
        ".zst": lambda: zstandard.ZstdCompressor().compress(content),
    }[suffix]()
    path: Path = tmp_path_factory.getbasetemp() / f"content{suffix}"
    path.write_bytes(compressed)
    assert b"".join(read_raw_lines(path)) == content
    assert b"\n".join(read_lines(path)) == content.removesuffix(b"\n")
