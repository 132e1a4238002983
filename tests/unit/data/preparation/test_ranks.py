"""An encoded chunk on its way to another rank. The ranks themselves: see the integration tests."""

from pathlib import Path

import numpy as np

from transept.data.preparation.cleaning import Cleaning
from transept.data.preparation.encode import ChunkEncoder, EncodedChunk
from transept.data.preparation.formats import Chunk, Tsv
from transept.data.preparation.ranks import packed, unpacked
from transept.text.tokenizer import Tokenizer


def flat(encoded: EncodedChunk) -> tuple[object, ...]:
    """All of it, such that it can be compared."""
    sides = [
        array for side in (encoded.source, encoded.target) for array in (side.ids, side.lengths)
    ]
    arrays = [encoded.lines, encoded.hashes, *sides]
    facts = [(array.dtype.str, array.tolist()) for array in arrays]
    return encoded.name, encoded.n_rows, encoded.dropped, facts


def test_nothing_is_lost_on_the_way(tokenizer: Tokenizer) -> None:
    text = b"\n".join([b"house\tHaus", b"alone", b"\xff\tx", b"red\t", "grün\t🙂".encode()])
    chunk = Chunk(0, np.arange(3, 8), (text,))
    for name in ("x.tsv", "x-\udcff.tsv"):  # a file's name need not be UTF-8
        for cleaning in (Cleaning(), Cleaning(drop_duplicates=False), Cleaning(max_tokens=2)):
            encoder = ChunkEncoder([Tsv(Path(name))], tokenizer, tokenizer, cleaning)
            encoded = encoder.encode(chunk)
            checksum, arrived = unpacked(packed(7, encoded))
            assert checksum == 7
            assert flat(arrived) == flat(encoded)
            assert len(encoded.dropped) >= 3
