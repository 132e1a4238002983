import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from transept.data.preparation.formats import LinePair
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import Corpus, Manifest, width_for
from transept.errors import DataError
from transept.runtime.storage import unsealed
from transept.text.symbols import Symbols
from transept.text.tokenizer import EOS_ID, Tokenizer

Pairs = list[tuple[str, str]]
PAIRS = [("the house", "das Haus"), ("a tree is a tree", "ein Baum ist ein Baum"), ("a", "b")]


@pytest.fixture
def directory(tmp_path: Path, tokenizer_directory: Path) -> Path:
    for index, side in enumerate(("en", "de")):
        (tmp_path / f"x.{side}").write_text("".join(f"{pair[index]}\n" for pair in PAIRS))
    job = Preparation(
        inputs=(LinePair(tmp_path / "x.en", tmp_path / "x.de"),),
        tokenizer=tokenizer_directory,
        output=tmp_path / "corpus",
    )
    prepare(job, workers=0)
    return tmp_path / "corpus"


def test_corpus_returns_the_stored_sentences(directory: Path, tokenizer: Tokenizer) -> None:
    corpus = Corpus.open(directory, verify=True)
    assert len(corpus) == len(PAIRS)
    for index, (source, target) in enumerate(PAIRS):
        assert corpus.source(index).tolist() == [*tokenizer.encode(source), EOS_ID]
        assert corpus.target(index).tolist() == [*tokenizer.encode(target), EOS_ID]
        assert corpus.source_lengths[index] == len(corpus.source(index))
        assert corpus.target_lengths[index] == len(corpus.target(index))


def test_sentences_are_views_of_the_mapped_file(directory: Path) -> None:
    corpus = Corpus.open(directory)
    assert corpus.source(0).base is not None
    assert not corpus.source(0).flags.writeable
    assert type(corpus.source(0)) is np.ndarray


def test_index_out_of_range_raises(directory: Path) -> None:
    corpus = Corpus.open(directory)
    for index in (-1, len(corpus)):
        with pytest.raises(IndexError, match=f"pair {index} is out of range"):
            corpus.target(index)


def test_manifest_counts_pairs_and_tokens(directory: Path) -> None:
    manifest = Corpus.open(directory).manifest
    assert (manifest.read, manifest.pairs, manifest.dropped) == (3, 3, {})
    assert manifest.source.tokens == Corpus.open(directory).source_lengths.sum()
    assert manifest.source.unknown == 0
    assert manifest.settings.inputs[0].bytes == (29, 33)
    assert manifest == Manifest.load(directory)


def test_corpus_includes_its_tokenizer(directory: Path, tokenizer: Tokenizer) -> None:
    corpus = Corpus.open(directory)
    assert Tokenizer.load(corpus.source_tokenizer).sha256 == tokenizer.sha256
    assert corpus.target_tokenizer == corpus.source_tokenizer


def test_unpickled_corpus_maps_the_files_itself(directory: Path) -> None:
    corpus = Corpus.open(directory)
    sent = pickle.dumps(corpus)
    assert len(sent) < 500
    assert pickle.loads(sent).source(1).tolist() == corpus.source(1).tolist()


@pytest.mark.parametrize("name", ["source.ids", "source.offsets", "target.ids", "target.offsets"])
def test_damaged_file_is_detected_and_named(directory: Path, name: str) -> None:
    path = directory / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DataError, match=rf"{name} has \d+ bytes instead of \d+; copy it again"):
        Corpus.open(directory)
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(DataError, match=rf"{name} was altered.*prepare the corpus again"):
        Corpus.open(directory, verify=True)
    path.unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        Corpus.open(directory)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda text: text[:40], "is damaged"),
        (lambda text: "[]", "is damaged"),
        (lambda text: text.replace('"format": 1', '"format": 2', 1), "has format 2"),
        (lambda text: text.replace('"pairs": 3', '"pairs": "x"', 1), "pairs: expected int"),
        (lambda text: text.replace('"pairs": 3', '"pairs": 2', 1), "do not match"),
    ],
)
def test_damaged_manifest_is_rejected(
    directory: Path, damage: Callable[[str], str], complaint: str
) -> None:
    path = directory / "manifest.json"
    unmarked = json.dumps(unsealed(path.read_bytes()), indent=2)
    path.write_text(damage(unmarked))
    with pytest.raises(DataError, match=complaint):
        Corpus.open(directory)


def test_altered_manifest_is_detected(directory: Path) -> None:
    path = directory / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"pairs": 3', b'"pairs": 2'))
    with pytest.raises(DataError, match=r"manifest\.json is damaged.*prepare the corpus again"):
        Corpus.open(directory)


def test_vocabulary_of_another_corpus_is_rejected(directory: Path) -> None:
    Corpus.open(directory, verify=True)
    path = directory / "tokenizer/tokenizer.model"
    path.write_bytes(path.read_bytes()[:-1])
    Corpus.open(directory)
    with pytest.raises(DataError, match=r"tokenizer\.model.*prepare the corpus again"):
        Corpus.open(directory, verify=True)
    Symbols(["one", "two"]).save(directory / "tokenizer")
    with pytest.raises(DataError, match="is not the vocabulary of the ids"):
        Corpus.open(directory, verify=True)


def test_directory_without_manifest_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not a prepared corpus.*transept data prepare"):
        Corpus.open(tmp_path)


def test_hash_depends_only_on_the_sentences(
    directory: Path, tmp_path: Path, tokenizer_directory: Path
) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    (tmp_path / "same.tsv").write_text(text)
    (tmp_path / "other.tsv").write_text(text.replace("tree", "trees"))
    hashes = []
    for name in ("same", "other"):
        from transept.data.preparation.formats import Tsv

        job = Preparation(
            inputs=(Tsv(tmp_path / f"{name}.tsv"),),
            tokenizer=tokenizer_directory,
            output=tmp_path / name,
        )
        hashes.append(prepare(job, workers=0).hash)
    assert hashes[0] == Corpus.open(directory).hash
    assert hashes[1] != hashes[0]


def test_ids_take_two_bytes_up_to_65535() -> None:
    assert width_for(65_535) == "uint16"
    assert width_for(65_536) == "uint32"


def test_the_manifest_is_plain_json(directory: Path) -> None:
    table = json.loads((directory / "manifest.json").read_text())
    assert set(table["files"]) == {"source.ids", "source.offsets", "target.ids", "target.offsets"}
    assert len(table["hash"]) == 64
