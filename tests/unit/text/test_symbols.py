"""Vocabularies of whole symbols."""

import pickle
from pathlib import Path

import pytest

from transept.errors import VocabularyError
from transept.runtime.storage import sealed, unsealed
from transept.text.symbols import Symbols, load_vocabulary
from transept.text.tokenizer import EOS_ID, PAD_ID, UNK_ID, Tokenizer
from transept.text.training import train_tokenizer

VOCABULARY = Symbols(["XX", "(S", "(NP", ")S", ")NP"])


def test_decode_inverts_encode() -> None:
    ids = VOCABULARY.encode("(S (NP XX XX )NP )S")
    assert ids == [5, 6, 4, 4, 8, 7]
    assert VOCABULARY.decode([PAD_ID, *ids, EOS_ID]) == "(S (NP XX XX )NP )S"
    assert VOCABULARY.encode_batch(["XX", ""]) == [[4], []]
    assert VOCABULARY.vocab_size == 9


def test_unknown_symbol_becomes_unk() -> None:
    assert VOCABULARY.encode("(S (VP") == [5, UNK_ID]
    assert VOCABULARY.symbols_of([5, UNK_ID]) == ["(S", "<unk>"]


def test_ids_beyond_the_vocabulary_are_rejected() -> None:
    with pytest.raises(VocabularyError, match="id 9 is not in this vocabulary of 9"):
        VOCABULARY.decode([4, 9])
    with pytest.raises(VocabularyError, match="id -1"):
        VOCABULARY.decode([-1])


@pytest.mark.parametrize("symbols", [["A", "A"], ["A B"], [""], ["<pad>"]])
def test_invalid_symbols_are_rejected(symbols: list[str]) -> None:
    with pytest.raises(VocabularyError, match="not a vocabulary of symbols"):
        Symbols(symbols)


def test_load_inverts_save(tmp_path: Path) -> None:
    VOCABULARY.save(tmp_path / "new" / "directory")
    loaded = Symbols.load(tmp_path / "new" / "directory")
    assert loaded.symbols == VOCABULARY.symbols
    assert loaded.sha256 == VOCABULARY.sha256
    assert pickle.loads(pickle.dumps(loaded)).encode("(S") == [5]
    assert isinstance(load_vocabulary(tmp_path / "new" / "directory"), Symbols)
    assert [file.name for file in (tmp_path / "new" / "directory").iterdir()] == ["tokenizer.json"]


def test_load_vocabulary_accepts_either_kind(tmp_path: Path) -> None:
    train_tokenizer(["the cat sleeps"] * 10, vocab_size=270).save(tmp_path)
    assert isinstance(load_vocabulary(tmp_path), Tokenizer)
    with pytest.raises(VocabularyError, match="is not a vocabulary of symbols"):
        Symbols.load(tmp_path)


def test_damaged_file_is_detected(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="cannot be read"):
        load_vocabulary(tmp_path)
    VOCABULARY.save(tmp_path)
    file = tmp_path / "tokenizer.json"
    manifest = unsealed(file.read_bytes())
    file.write_bytes(sealed(manifest | {"symbols": ["XX", "(S", ")S"]}))
    with pytest.raises(VocabularyError, match="sha256"):
        Symbols.load(tmp_path)
    file.write_bytes(sealed(manifest | {"format": 2}))
    with pytest.raises(VocabularyError, match="format 1"):
        Symbols.load(tmp_path)
    file.write_text("{")
    with pytest.raises(VocabularyError, match="is damaged"):
        Symbols.load(tmp_path)


def test_save_to_unwritable_directory_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(VocabularyError, match="cannot be written"):
        VOCABULARY.save(tmp_path / "file")
