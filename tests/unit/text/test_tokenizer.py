import hashlib
import io
import json
import pickle
import random
from itertools import cycle, islice
from pathlib import Path
from typing import get_args

import pytest
import sentencepiece

from transept.errors import DataError, VocabularyError
from transept.runtime.storage import unsealed
from transept.text.symbols import load_vocabulary
from transept.text.tokenizer import BOS_ID, EOS_ID, MANY, PAD_ID, UNK_ID, Kind, Tokenizer
from transept.text.training import train_tokenizer

SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "ta", "vo", "si", "ber", "gen", "ung", "schö", "né"]
AWKWARD = [
    "",
    " ",
    "  two  spaces  ",
    "\t\n\r\0\x01\x7f\x85\u2028\ufeff\ufffd\ufffe\U0010ffff",
    "<s></s><unk><pad><0x0A><0xE2><0x96><0x81>",
    " ⁇ ▁ ▁▁ ▅",
    "中文 ½ ﬁ e\u0301 👩‍👩‍👧",
]


@pytest.fixture(scope="module", params=get_args(Kind))
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@pytest.fixture(scope="module")
def tokenizer(kind: Kind) -> Tokenizer:
    rng = random.Random(1)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(200)]
    lines = [" ".join(rng.choices(words, k=9)) for _ in range(300)]
    return train_tokenizer(lines, vocab_size=400, kind=kind)


def test_tokenizer_reports_kind_and_size(tokenizer: Tokenizer, kind: Kind) -> None:
    assert tokenizer.kind == kind
    assert tokenizer.vocab_size == 400
    assert (tokenizer.pad_id, tokenizer.eos_id, tokenizer.unk_id, tokenizer.bos_id) == (0, 1, 2, 3)
    assert repr(tokenizer) == f"Tokenizer(kind='{kind}', vocab_size=400)"


@pytest.mark.parametrize("text", AWKWARD)
def test_unusual_text_is_preserved(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert not {PAD_ID, EOS_ID, UNK_ID, BOS_ID} & set(ids)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode_pieces(tokenizer.pieces(text)) == text


def test_words_of_the_training_text_are_few_subwords(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.encode("kalo mine")) < len("kalo mine")


@pytest.mark.parametrize("size", [0, 1, MANY - 1, MANY, 3 * MANY])
def test_encode_batch_equals_encode(tokenizer: Tokenizer, size: int) -> None:
    texts = [*islice(cycle(AWKWARD), size)]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]


def test_special_ids_are_dropped(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("kalo ▁")
    assert tokenizer.decode([BOS_ID, *ids, EOS_ID, PAD_ID, PAD_ID]) == "kalo ▁"
    assert tokenizer.decode([PAD_ID]) == tokenizer.decode([]) == ""


@pytest.mark.parametrize("wrong", [-1, 400, 2**40])
def test_ids_of_another_vocabulary_are_rejected(tokenizer: Tokenizer, wrong: int) -> None:
    with pytest.raises(VocabularyError, match=f"id {wrong} is not in this vocabulary of 400"):
        tokenizer.decode([300, wrong])


@pytest.mark.parametrize("wrong", ["no such piece", "", " "])
def test_subwords_of_another_vocabulary_are_rejected(tokenizer: Tokenizer, wrong: str) -> None:
    with pytest.raises(VocabularyError, match="is not in this vocabulary"):
        tokenizer.decode_pieces(["▁", wrong])


def test_lone_surrogates_are_rejected(tokenizer: Tokenizer) -> None:
    with pytest.raises(DataError, match=r"text 1 of 1 .*U\+D800\) at character 3"):
        tokenizer.encode("ab\ud800")
    with pytest.raises(DataError, match=r"text 2 of 2 .*U\+DC80"):
        tokenizer.encode_batch(["fine", "\udc80"])
    with pytest.raises(DataError, match=rf"text {MANY} of {MANY} .*U\+DC80"):
        tokenizer.encode_batch([*["fine"] * (MANY - 1), "\udc80"])


def test_tokenizer_can_be_pickled(tokenizer: Tokenizer) -> None:
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.sha256 == tokenizer.sha256
    assert copy.encode("kalo mine") == tokenizer.encode("kalo mine")


def test_save_and_load(tokenizer: Tokenizer, tmp_path: Path) -> None:
    directory = tmp_path / "new" / "vocabulary"
    tokenizer.save(directory)
    tokenizer.save(directory)  # replaces what is there
    assert sorted(path.name for path in directory.iterdir()) == [
        "tokenizer.json",
        "tokenizer.model",
    ]
    model = (directory / "tokenizer.model").read_bytes()
    assert unsealed((directory / "tokenizer.json").read_bytes()) == {
        "format": 1,
        "kind": tokenizer.kind,
        "vocab_size": 400,
        "sha256": hashlib.sha256(model).hexdigest(),
    }
    assert Tokenizer.load(directory).sha256 == tokenizer.sha256


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("tokenizer.model", None, "cannot be read"),
        ("tokenizer.json", None, "cannot be read"),
        ("tokenizer.json", b"{", "is damaged"),
        ("tokenizer.json", b"\xff", "is damaged"),
        ("tokenizer.json", b"[]", "is damaged"),
        ("tokenizer.json", b'{"format": 2}', "not a tokenizer of format 1"),
        ("tokenizer.model", b"damaged", "sha256"),
        ("tokenizer.json", b'{"format": 1}', "sha256"),
    ],
)
def test_error_names_a_damaged_directory(
    tokenizer: Tokenizer, tmp_path: Path, file: str, content: bytes | None, complaint: str
) -> None:
    tokenizer.save(tmp_path)
    path = tmp_path / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    for load in (Tokenizer.load, load_vocabulary):
        with pytest.raises(VocabularyError, match=complaint) as caught:
            load(tmp_path)
        assert str(tmp_path) in str(caught.value)
        assert "transept tokenizer train" in str(caught.value)


def test_manifest_of_another_tokenizer_is_rejected(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    manifest = unsealed(path.read_bytes())
    for change in ({"vocab_size": 401}, {"kind": "other"}, {"sael": "?"}):
        path.write_text(json.dumps(manifest | change))
        with pytest.raises(VocabularyError, match=r"tokenizer\.json: does not describe"):
            Tokenizer.load(tmp_path)
    path.write_text(json.dumps(manifest))  # as an older transept wrote it
    assert Tokenizer.load(tmp_path).sha256 == tokenizer.sha256


@pytest.mark.parametrize("model", [b"", b"damaged"])
def test_bytes_that_are_not_a_model_are_rejected(model: bytes) -> None:
    with pytest.raises(VocabularyError, match="not"):
        Tokenizer(model)


def test_models_with_other_special_ids_are_rejected(tmp_path: Path) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ka lo mi"] * 9),
        model_writer=model,
        vocab_size=12,
        model_type="bpe",
        minloglevel=2,
    )
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())
    manifest = {"format": 1, "sha256": hashlib.sha256(model.getvalue()).hexdigest()}
    (tmp_path / "tokenizer.json").write_text(json.dumps(manifest))
    with pytest.raises(VocabularyError, match=r"tokenizer\.model: .*not made by transept"):
        Tokenizer.load(tmp_path)


def test_error_names_an_unwritable_directory(tokenizer: Tokenizer, tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    with pytest.raises(VocabularyError, match=r"file: .*cannot be written"):
        tokenizer.save(occupied)


def test_after_word_holds_starts_of_words_and_punctuation(tokenizer: Tokenizer) -> None:
    surfaces = tokenizer.surfaces(range(tokenizer.vocab_size))
    allowed = {surfaces[index] for index in tokenizer.after_word}
    assert {b"\xe2", b"\xc2", b"!"} <= allowed
    assert any(surface.startswith(b" ") for surface in allowed)
    assert not {b"", b"a", b"\xc3", b"\x80"} & allowed
    assert {PAD_ID, EOS_ID, BOS_ID}.isdisjoint(tokenizer.after_word)
    inside = {surface for surface in surfaces if surface[:1].isalnum()}
    assert inside
    assert not inside & allowed
