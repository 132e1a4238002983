"""Treebank files as input of data preparation."""

from pathlib import Path

import pytest

from transept.data.cleaning import Cleaning
from transept.data.preparation.formats import chunks
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import Corpus
from transept.tasks.parsing.pairs import clean_trees
from transept.tasks.parsing.treebank import Treebank
from transept.tasks.parsing.vocabulary import tags_of, tree_vocabulary
from transept.text.symbols import load_vocabulary
from transept.text.training import train_tokenizer

TREES = """( (S
    (NP-SBJ-1 (DT The) (NN cat))
    (VP (VBZ sleeps) (NP (-NONE- *-1)))))
(NP (NN one)) (NP (NN two))

(S (VP (VB stop)) hello)
(S (NP (-NONE- *)))
(NP (NN caf\xe9))
"""
PAIRS = [
    ("The cat sleeps", "(S (NP XX XX )NP (VP XX )VP )S"),
    ("one", "(NP XX )NP"),
    ("two", "(NP XX )NP"),
]


@pytest.fixture
def treebank(tmp_path: Path) -> Path:
    path = tmp_path / "some.mrg"
    path.write_bytes(TREES.encode("latin-1"))
    return path


def test_row_is_one_tree_for_any_line_layout(treebank: Path) -> None:
    rows = list(Treebank(treebank).rows())
    assert [number for number, _ in rows] == [1, 4, 4, 6, 7, 8]
    assert not any(b"\n" in text for _, (text,) in rows)
    assert rows[-1][1][0] == "(NP (NN caf\xe9))".encode("latin-1")


def test_trees_become_pairs_and_faults_are_reported(treebank: Path) -> None:
    bank = Treebank(treebank)
    texts = [text.decode("utf-8", "replace") for _, (text,) in bank.rows()]
    found = bank.sentences([texts[:5]])
    assert list(zip(found.source, found.target, strict=True))[:3] == PAIRS
    assert found.malformed == {3: "the word 'hello' has no tag"}
    assert found.source[4] == ""
    kept = Treebank(treebank, "kept").sentences([texts[:1]])
    assert kept.target == ["(S (NP DT NN )NP (VP VBZ )VP )S"]


def test_treebank_can_be_prepared(treebank: Path, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["The cat sleeps one two"] * 10, vocab_size=280)
    tokenizer.save(tmp_path / "vocabulary")
    good = tmp_path / "good.mrg"
    good.write_text("\n".join(f"({label} (X x))" for label in ("S", "NP", "VP")))
    symbols = tree_vocabulary(clean_trees([good]))
    job = Preparation(
        inputs=(Treebank(treebank),),
        tokenizer=tmp_path / "vocabulary",
        target_tokenizer=symbols,
        output=tmp_path / "corpus",
        cleaning=Cleaning(max_ratio=0),
    )
    manifest = prepare(job, workers=0)
    assert manifest.dropped == {"encoding": 1, "malformed": 1, "empty": 1}
    corpus = Corpus.open(tmp_path / "corpus")
    assert load_vocabulary(corpus.target_tokenizer).sha256 == symbols.sha256
    assert [symbols.decode(corpus.target(i).tolist()) for i in range(3)] == [t for _, t in PAIRS]
    assert [tokenizer.decode(corpus.source(i).tolist()) for i in range(3)] == [s for s, _ in PAIRS]
    (record,) = manifest.settings.inputs
    assert record.format == "trees"
    assert record.options == ("XX", "plain", "removed", "own")


def test_chunks_contain_whole_trees(treebank: Path) -> None:
    (chunk,) = chunks([Treebank(treebank)])
    assert len(chunk) == 6
    assert len(chunk.columns[0].split(b"\n")) == 6


def test_tags_of_vocabulary_shows_whether_tags_are_kept(treebank: Path) -> None:
    trees = list(clean_trees([_utf8(treebank)]))
    assert tags_of(tree_vocabulary(trees, "XX")) == "XX"
    assert tags_of(tree_vocabulary(trees, "kept")) == "kept"


def _utf8(path: Path) -> Path:
    path.write_text("(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))\n")
    return path
