from pathlib import Path

import numpy as np
import pytest

from transept.data.cleaning import Cleaning, Dropped, Reason
from transept.data.config import SubwordSampling
from transept.data.preparation.encode import ChunkEncoder, EncodedChunk
from transept.data.preparation.formats import Chunk, Jsonl, LinePair, Tsv
from transept.errors import ConfigError, DataError
from transept.text.spans import MASKS
from transept.text.tokenizer import EOS_ID, Tokenizer
from transept.text.training import train_tokenizer
from transept.text.variation import Variation

PAIR = LinePair(Path("x.en"), Path("x.de"))


def encode(
    tokenizer: Tokenizer,
    source: bytes,
    target: bytes,
    cleaning: Cleaning | None = None,
    first_line: int = 1,
) -> EncodedChunk:
    lines = np.arange(source.count(b"\n") + 1) + first_line
    chunk = Chunk(0, lines, (source, target))
    return ChunkEncoder([PAIR], tokenizer, tokenizer, cleaning or Cleaning()).encode(chunk)


def reasons(encoded: EncodedChunk) -> list[tuple[int, Reason]]:
    return [(drop.line, drop.reason) for drop in encoded.dropped]


def test_sentences_are_concatenated_and_end_with_eos(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"the house\n a tree ", b"das Haus\nein Baum\r")
    expected = [*tokenizer.encode("the house"), EOS_ID, *tokenizer.encode("a tree"), EOS_ID]
    assert encoded.source.ids.tolist() == expected
    assert encoded.source.ids.dtype == np.uint16
    assert encoded.target.lengths.tolist() == [
        len(tokenizer.encode("das Haus")) + 1,
        len(tokenizer.encode("ein Baum")) + 1,
    ]
    assert encoded.lines.tolist() == [1, 2]
    assert encoded.dropped == []
    assert len(encoded.hashes) == 2


def test_wrong_encoding_is_reported_with_file_line_and_byte(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"a\nb\xffc\nd", b"e\nf\n\xe4", first_line=7)
    assert encoded.dropped == [
        Dropped("x.en", 8, Reason.ENCODING, "byte 2 is 0xff"),
        Dropped("x.de", 9, Reason.ENCODING, "byte 1 is 0xe4"),
    ]
    assert encoded.lines.tolist() == [7]


def test_wrong_encoding_can_be_fatal(tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"x\.de, line 2: not UTF-8 text \(byte 1 is 0xff\)"):
        encode(tokenizer, b"a\nb", b"c\n\xff", Cleaning(bad_encoding="stop"))


def test_rows_with_nul_characters_are_dropped(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"a\nb\0c\nd\n\0", b"e\nf\ng\0\nh\0")
    assert encoded.dropped == [
        Dropped("x.en", 2, Reason.ENCODING, "character 2 of the source is NUL"),
        Dropped("x.de", 3, Reason.ENCODING, "character 2 of the target is NUL"),
        Dropped("x.en", 4, Reason.ENCODING, "character 1 of the source is NUL"),
    ]
    with pytest.raises(DataError, match=r"x\.de, line 1: not UTF-8 text \(character 2 of the"):
        encode(tokenizer, b"a", b"b\0", Cleaning(bad_encoding="stop"))
    replaced = encode(tokenizer, b"a\0b", b"c", Cleaning(bad_encoding="replace"))
    assert replaced.source.ids.tolist() == [*tokenizer.encode("a\ufffdb"), EOS_ID]


def test_escaped_nul_characters_are_dropped(tokenizer: Tokenizer) -> None:
    """An input with a single file has no second path to report."""
    line = rb'{"source": "a", "target": "b\u0000"}'
    chunk = Chunk(0, np.array([5]), (line,))
    encoded = ChunkEncoder([Jsonl(Path("x"))], tokenizer, tokenizer, Cleaning()).encode(chunk)
    assert encoded.dropped == [Dropped("x", 5, Reason.ENCODING, "character 2 of the target is NUL")]


def test_wrong_encoding_can_be_replaced(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"a\xffb", b"c", Cleaning(bad_encoding="replace"))
    assert encoded.dropped == []
    assert tokenizer.decode(encoded.source.ids.tolist()) == "a\ufffdb"


def test_malformed_lines(tokenizer: Tokenizer) -> None:
    source = Tsv(Path("x.tsv"))
    chunk = Chunk(0, np.arange(2) + 1, (b"a\tb\nc",))
    encoded = ChunkEncoder([source], tokenizer, tokenizer, Cleaning()).encode(chunk)
    assert encoded.dropped == [Dropped("x.tsv", 2, Reason.MALFORMED, "1 of 2 columns")]
    with pytest.raises(DataError, match=r"x\.tsv, line 2: not in the input's format"):
        ChunkEncoder([source], tokenizer, tokenizer, Cleaning(malformed="stop")).encode(chunk)


def test_undecodable_rows_are_not_reported_as_malformed(tokenizer: Tokenizer) -> None:
    chunk = Chunk(0, np.array([1]), (b"\xff",))
    strict = Cleaning(malformed="stop")
    encoded = ChunkEncoder([Tsv(Path("x.tsv"))], tokenizer, tokenizer, strict).encode(chunk)
    assert reasons(encoded) == [(1, Reason.ENCODING)]


def test_empty_sides(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"\n \na\n\t", b"b\nc\n\n\n".rstrip(b"\n") + b"\n\n")
    assert [drop.detail for drop in encoded.dropped] == [
        "source",
        "source",
        "target",
        "both sides",
    ]
    kept = encode(tokenizer, b"\na", b"b\nc", Cleaning(drop_empty=False, max_ratio=0))
    assert kept.dropped == []
    assert kept.source.lengths[0] == 1
    assert kept.source.ids[0] == EOS_ID


def test_length_counts_eos(tokenizer: Tokenizer) -> None:
    n_tokens = len(tokenizer.encode("the house")) + 1
    fits = encode(tokenizer, b"the house", b"the house", Cleaning(max_tokens=n_tokens))
    assert fits.dropped == []
    beyond = encode(tokenizer, b"the house", b"the house", Cleaning(max_tokens=n_tokens - 1))
    assert beyond.dropped == [Dropped("x.en", 1, Reason.LONG, f"{n_tokens} tokens")]


def test_ratio_works_both_ways(tokenizer: Tokenizer) -> None:
    long = b"the house of the tree and a house"
    encoded = encode(tokenizer, b"a\n" + long, long + b"\na", Cleaning(max_ratio=2))
    assert reasons(encoded) == [(1, Reason.RATIO), (2, Reason.RATIO)]
    assert encode(tokenizer, b"a", long, Cleaning(max_ratio=0)).dropped == []


def test_row_is_dropped_only_for_its_first_fault(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"\xff\n\n" + b"x " * 300, b"\n\ny", Cleaning(max_tokens=20))
    assert reasons(encoded) == [(1, Reason.ENCODING), (2, Reason.EMPTY), (3, Reason.LONG)]


def test_chunk_without_good_rows_is_empty(tokenizer: Tokenizer) -> None:
    encoded = encode(tokenizer, b"\n", b"\n")
    assert len(encoded.dropped) == encoded.n_rows == 2
    assert len(encoded.source.ids) == len(encoded.lines) == len(encoded.hashes) == 0


def test_select_keeps_whole_sentences(tokenizer: Tokenizer) -> None:
    side = encode(tokenizer, b"the house\na\na tree", b"x y\nz\nu v").source
    kept = side.select(np.array([True, False, True]))
    assert kept.ids.tolist() == [
        *tokenizer.encode("the house"), EOS_ID, *tokenizer.encode("a tree"), EOS_ID
    ]  # fmt: skip
    assert len(kept.lengths) == 2


@pytest.mark.parametrize("wrong", [{"max_tokens": 1}, {"max_ratio": 0.5}, {"max_tokens": -3}])
def test_invalid_thresholds_are_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be 0"):
        Cleaning(**wrong)  # type: ignore[arg-type]


# --- variation and sampled subwords ------------------------------------------------------------

SENTENCES = (
    b"See https://example.org for Hamburg.\nIt costs 12,345.67 dollars.",
    "Für Hamburg siehe https://example.org.\nEs kostet 12.345,67 Dollar.".encode(),
)


@pytest.fixture(scope="module")
def masking() -> Tokenizer:
    lines = b"\n".join(SENTENCES).decode().splitlines()
    return train_tokenizer(lines * 20, vocab_size=310, masks=MASKS)


def varied(
    tokenizer: Tokenizer, variation: Variation, sampling: SubwordSampling | None = None
) -> list[tuple[str, str]]:
    """The texts of the pairs that are encoded from `SENTENCES`."""
    chunk = Chunk(0, np.arange(2) + 1, SENTENCES)
    encoder = ChunkEncoder(
        [PAIR], tokenizer, tokenizer, Cleaning(), sampling, variation, ("en", "de")
    )
    encoded = encoder.encode(chunk)
    assert len(encoded.hashes) == 2
    sides = (
        [tokenizer.decode(ids) for ids in np.split(side.ids, np.cumsum(side.lengths)[:-1])]
        for side in (encoded.source, encoded.target)
    )
    return [*zip(*sides, strict=True)]


def test_variation_masks_what_both_sides_share(masking: Tokenizer) -> None:
    name, figure = MASKS[0], MASKS[len(MASKS) // 2]
    assert varied(masking, Variation()) == [
        (f"See {name} for Hamburg.", f"Für Hamburg siehe {name}."),
        (f"It costs {figure} dollars.", f"Es kostet {figure} Dollar."),
    ]


def test_each_copy_of_a_pair_is_varied_differently(masking: Tokenizer) -> None:
    sampling = SubwordSampling(subword_dropout=0.1, copies=12)
    found = varied(masking, Variation(unstopped=0.5), sampling)
    assert len(found) == 24
    assert {source[-1] for source, _ in found[1::2]} == {".", "s"}
    assert all(source.endswith(".") == target.endswith(".") for source, target in found)


def test_duplicates_and_their_hashes_do_not_depend_on_the_variation(masking: Tokenizer) -> None:
    chunk = Chunk(0, np.arange(2) + 1, SENTENCES)
    plain, changed = (
        ChunkEncoder([PAIR], masking, masking, Cleaning(), None, variation).encode(chunk)
        for variation in (None, Variation(unstopped=0.9))
    )
    assert plain.hashes.tolist() == changed.hashes.tolist()
    assert plain.source.ids.tolist() != changed.source.ids.tolist()


def test_subwords_of_only_the_source_can_be_sampled(masking: Tokenizer) -> None:
    chunk = Chunk(0, np.arange(2) + 1, SENTENCES)
    sampling = SubwordSampling(subword_dropout=0.5, copies=2, sides="source")
    encoded = ChunkEncoder([PAIR], masking, masking, Cleaning(), sampling).encode(chunk)
    (first, second), (third, fourth) = np.split(encoded.target.lengths, 2)
    assert (first, second) == (third, fourth)
    canonical = masking.encode_batch(SENTENCES[1].decode().splitlines())
    assert encoded.target.ids.tolist() == [*canonical[0], 1, *canonical[1], 1] * 2
    halves = np.split(encoded.source.ids, [encoded.source.lengths[:2].sum()])
    assert halves[0].tolist() != halves[1].tolist()
