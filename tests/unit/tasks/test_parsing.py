"""Trees as sequences, faults and their repair, tags, vocabularies, pairs."""

from pathlib import Path

import pytest

from transept.errors import DataError, VocabularyError
from transept.tasks.parsing.leaves import NamedLeaves
from transept.tasks.parsing.linearisation import (
    Fault,
    MalformedSequenceError,
    delinearise,
    fault_of,
    linearise,
)
from transept.tasks.parsing.pairs import clean_trees, pair_of
from transept.tasks.parsing.repair import repair
from transept.tasks.parsing.tags import punctuation_tags, with_tags
from transept.tasks.parsing.vocabulary import Roles, tags_of, tree_vocabulary, vocabulary_of
from transept.text.symbols import Symbols
from transept.text.trees import Bracket, Tree, TreeCleaning, parse_tree

CAT = parse_tree("(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .))")


def test_linearise_gives_the_sequence_of_vinyals() -> None:
    assert " ".join(linearise(CAT)) == "(S (NP XX XX )NP (VP XX )VP XX )S"
    assert " ".join(linearise(CAT, "kept")) == "(S (NP DT NN )NP (VP VBZ )VP . )S"


def test_delinearise_inverts_linearise() -> None:
    assert delinearise(linearise(CAT), CAT.words, CAT.tags) == CAT
    assert delinearise(linearise(CAT, "kept"), CAT.words) == CAT
    assert delinearise(linearise(CAT), CAT.words).tags == ("XX",) * 4


def test_named_leaves_name_common_words() -> None:
    cats = [CAT, parse_tree("(NP (NN cat) (NN house))"), parse_tree("(VP (VB cat) (NN house))")]
    named = NamedLeaves.common(cats, at_least=2)
    assert named.leaves == {"NN(cat)", "VB(cat)", "NN(house)"}
    assert " ".join(linearise(CAT, named)) == "(S (NP DT NN(cat) )NP (VP VBZ )VP . )S"
    assert delinearise(linearise(CAT, named), CAT.words) == CAT
    assert delinearise(linearise(CAT, named), CAT.words, ["A", "B", "C", "D"]).tags[1] == "B"
    assert str(repair(["(S", "NN(cat)", "VB"], ["a", "b"])) == "(S (NN a) (VB b))"


def test_named_bracket_is_escaped() -> None:
    tree = Tree(("(", "a)"), ("-LRB-", "NN"), (Bracket("S", 0, 2),))
    named = NamedLeaves.common([tree], at_least=1)
    assert linearise(tree, named) == ["(S", "-LRB-(-LRB-)", "NN(a-RRB-)", ")S"]
    assert delinearise(linearise(tree, named), tree.words) == tree


def test_linearise_rejects_a_tree_without_constituents() -> None:
    with pytest.raises(DataError, match=r"the tree \(NN cat\) has no constituent"):
        linearise(parse_tree("(NN cat)"))


@pytest.mark.parametrize(
    ("line", "fault", "mended"),
    [
        ("", Fault.NO_ROOT, "(S (XX a) (XX b) (XX c))"),
        ("XX XX XX", Fault.NO_ROOT, "(S (XX a) (XX b) (XX c))"),
        (")S", Fault.NO_ROOT, "(S (XX a) (XX b) (XX c))"),
        ("(A XX <unk> XX XX )A", Fault.UNKNOWN, "(A (XX a) (XX b) (XX c))"),
        ("(A (B XX )C XX )B XX )A", Fault.MISMATCHED, "(A (B (XX a) (XX b)) (XX c))"),
        ("(A (B (C XX )B XX XX )A", Fault.MISMATCHED, "(A (B (C (XX a))) (XX b) (XX c))"),
        ("(A (B )B XX XX XX )A", Fault.EMPTY, "(A (XX a) (XX b) (XX c))"),
        ("(A XX )A (B XX XX )B", Fault.AFTER_ROOT, "(A (XX a) (B (XX b) (XX c)))"),
        ("(A XX XX XX )A )A", Fault.AFTER_ROOT, "(A (XX a) (XX b) (XX c))"),
        ("(A XX XX (B XX XX )B )A", Fault.TOO_MANY_WORDS, "(A (XX a) (XX b) (B (XX c)))"),
        ("(A XX XX XX (B XX )B )A", Fault.TOO_MANY_WORDS, "(A (XX a) (XX b) (XX c))"),
        ("(A XX (B XX XX", Fault.UNCLOSED, "(A (XX a) (B (XX b) (XX c)))"),
        ("(A XX (B XX", Fault.UNCLOSED, "(A (XX a) (B (XX b)) (XX c))"),
        ("(A XX XX )A", Fault.TOO_FEW_WORDS, "(A (XX a) (XX b) (XX c))"),
        ("XX (B XX XX )B", Fault.NO_ROOT, "(S (XX a) (B (XX b) (XX c)))"),
        ("(A XX (B NN XX )B )A", None, "(A (XX a) (B (NN b) (XX c)))"),
    ],
)
def test_faults_are_found_and_repaired(line: str, fault: Fault | None, mended: str) -> None:
    words = ["a", "b", "c"]
    assert fault_of(line.split(), 3) == fault
    assert str(repair(line.split(), words)) == mended
    assert repair(line.split(), words, ["A", "B", "C"]).tags == ("A", "B", "C")
    if fault is not None:
        with pytest.raises(MalformedSequenceError, match=fault.value) as error:
            delinearise(line.split(), words)
        assert error.value.fault is fault


def test_examples_cover_every_fault() -> None:
    seen = {
        fault_of(line.split(), 1)
        for line in ("", "(A <unk>", "(A )A", "(A XX )B", "(A XX )A (A", "(A XX XX", "(A")
    }
    assert seen | {fault_of(["(A", "XX", ")A"], 2)} == set(Fault)


# --- tags ------------------------------------------------------------------------------------


def test_punctuation_is_tagged() -> None:
    words = "`` Yes , '' said the cats ' owner : -LRB- no ! -RRB-"
    tags = "`` XX , '' XX XX XX POS XX : -LRB- XX . -RRB-"
    assert punctuation_tags(words.split()) == tuple(tags.split())


def test_straight_quotes_open_and_close() -> None:
    words = '" Yes " and " no "'
    assert punctuation_tags(words.split()) == ("``", "XX", "''", "XX", "``", "XX", "''")


def test_with_tags_uses_given_tags() -> None:
    bare = delinearise(linearise(CAT), CAT.words)
    assert with_tags(bare, CAT.tags) == CAT
    assert with_tags(bare).tags == ("XX", "XX", "XX", ".")
    with pytest.raises(DataError, match="3 tags were given for the 4 words of 'The cat sleeps"):
        with_tags(bare, ["DT", "NN", "VBZ"])


# --- vocabularies ----------------------------------------------------------------------------


def test_tree_vocabulary_contains_leaves_and_brackets() -> None:
    assert tree_vocabulary([CAT]).symbols == ("XX", "(NP", "(S", "(VP", ")NP", ")S", ")VP")
    kept = tree_vocabulary([CAT], "kept")
    assert kept.symbols[:4] == (".", "DT", "NN", "VBZ")
    assert kept.decode(kept.encode(" ".join(linearise(CAT, "kept")))) == " ".join(
        linearise(CAT, "kept")
    )


def test_vocabulary_of_named_leaves_includes_bare_tags() -> None:
    named = NamedLeaves.common([CAT], at_least=1)
    vocabulary = tree_vocabulary([CAT], named)
    assert len(vocabulary.symbols) == 4 + 4 + 6
    assert tags_of(vocabulary) == named
    line = " ".join(linearise(CAT, named))
    assert vocabulary.decode(vocabulary.encode(line)) == line
    with pytest.raises(VocabularyError, match="a symbol for any word"):
        Roles.of(vocabulary_of(["A"], ["NN(cat)"]))


def test_roles_classify_symbols() -> None:
    roles = Roles.of(Symbols(["(A", "XX", ")B", ")A", "(C", "NN"]))
    assert roles == Roles(labels=("A",), openers=(4,), closers=(7,), leaves=(5, 9))
    for useless in ([], ["XX"], ["(A", ")A"], ["(A", "XX"]):
        with pytest.raises(VocabularyError, match="cannot express trees"):
            Roles.of(Symbols(useless))
    assert Roles.of(vocabulary_of(["A", "B"])).labels == ("A", "B")


# --- pairs -----------------------------------------------------------------------------------


@pytest.fixture
def treebank(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "one.mrg", tmp_path / "two.mrg"]
    files[0].write_text(f"( {CAT})\n(S (-NONE- *))\n")
    files[1].write_text("(S\n (NP-SBJ (-LRB- -LRB-) (NN x))\n (VP (VB go)))\n")
    return files


def test_treebank_gives_parallel_text(treebank: list[Path]) -> None:
    assert [pair_of(tree) for tree in clean_trees(treebank)] == [
        ("The cat sleeps .", "(S (NP XX XX )NP (VP XX )VP XX )S"),
        ("-LRB- x go", "(S (NP XX XX )NP (VP XX )VP )S"),
    ]
    _, kept = clean_trees(treebank, TreeCleaning(labels="kept"))
    assert pair_of(kept, "kept") == ("-LRB- x go", "(S (NP-SBJ -LRB- NN )NP-SBJ (VP VB )VP )S")
