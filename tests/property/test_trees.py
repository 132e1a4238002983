"""Any tree survives a round trip."""

import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from tests.property.tree_strategies import trees

from transept.evaluation.evalb import COLLINS, Parameters, score_sentence
from transept.tasks.parsing.leaves import NamedLeaves
from transept.tasks.parsing.leaves import named as named_leaf
from transept.tasks.parsing.linearisation import delinearise, fault_of, linearise
from transept.tasks.parsing.repair import repair
from transept.tasks.parsing.vocabulary import tree_vocabulary
from transept.text.trees import Tree, TreeCleaning, clean, parse_tree, read_trees

SPACES = st.sampled_from([" ", "  ", "\t", "\n", "\n\n  ", "\r\n", "\f"])


@given(trees())
def test_tree_round_trips_through_text(tree: Tree) -> None:
    assert parse_tree(str(tree)) == tree


@given(st.lists(trees(max_words=4), max_size=4), st.lists(SPACES, min_size=1), st.data())
def test_trees_are_read_with_any_spacing(
    several: list[Tree], spaces: list[str], data: st.DataObject
) -> None:
    text = data.draw(SPACES).join(map(str, several))
    parts = text.split(" ")
    spaced = "".join(part + spaces[i % len(spaces)] for i, part in enumerate(parts))
    with TemporaryDirectory() as directory:
        file = Path(directory) / "trees"
        file.write_bytes(spaced.encode())
        assert list(read_trees(file)) == several


@given(trees())
def test_linearization_round_trips(tree: Tree) -> None:
    # Some of its words serve as the frequent words.
    named = NamedLeaves(frozenset(map(named_leaf, tree.tags[::2], tree.words[::2])))
    for tags in ("XX", "kept", named):
        symbols = linearise(tree, tags)
        assert fault_of(symbols, len(tree.words)) is None
        assert delinearise(symbols, tree.words, tree.tags) == tree
        assert repair(symbols, tree.words, tree.tags) == tree
        assert len(symbols) == 2 * len(tree.brackets) + len(tree.words)
    assert delinearise(linearise(tree, "kept"), tree.words) == tree
    assert delinearise(linearise(tree, named), tree.words) == tree


@given(trees())
def test_symbols_round_trip_through_ids(tree: Tree) -> None:
    vocabulary = tree_vocabulary([tree], "kept")
    line = " ".join(linearise(tree, "kept"))
    assert vocabulary.decode(vocabulary.encode(line)) == line


@given(
    st.lists(st.sampled_from(["(A", "(B", ")A", ")B", "XX", "NN", "<unk>"]), max_size=20),
    st.integers(1, 6),
)
def test_repaired_tree_covers_all_words(symbols: list[str], n_words: int) -> None:
    words = [f"w{number}" for number in range(n_words)]
    mended = repair(symbols, words)
    assert mended.words == tuple(words)
    assert delinearise(linearise(mended, "kept"), words) == mended
    if fault_of(symbols, n_words) is None:
        assert linearise(mended, "kept") == symbols


@given(trees())
def test_cleaning_is_idempotent(tree: Tree) -> None:
    cleaned = clean(tree)
    if cleaned is not None:
        assert clean(cleaned) == cleaned
        assert "-NONE-" not in cleaned.tags
        assert cleaned.brackets[0][1:] == (0, len(cleaned.words))
    assert clean(tree, TreeCleaning(labels="kept", traces="kept", root="kept")) == tree


@given(trees())
def test_tree_has_perfect_score_against_itself(tree: Tree) -> None:
    for parameters in (COLLINS, Parameters()):
        score = score_sentence(str(tree), str(tree), parameters)
        if score.status == "valid":
            assert score.complete
            assert (score.crossing, score.right_tags) == (0, score.words)
        else:
            assert all(tag in parameters.deleted for tag in tree.tags)


@given(trees(), trees())
def test_matches_equal_multiset_intersection(one: Tree, other: Tree) -> None:
    """Without equal labels, evalb's pairing finds the multiset intersection."""
    n_words = min(len(one.words), len(other.words))
    ours, theirs = (cut(tree, n_words, one) for tree in (one, other))
    score = score_sentence(str(ours), str(theirs), Parameters())
    counted = [
        Counter((re.split("[-=]", label)[0], *span) for label, *span in tree.brackets)
        for tree in (ours, theirs)
    ]
    assert score.matched == (counted[0] & counted[1]).total()
    assert (score.gold, score.predicted) == (len(ours.brackets), len(theirs.brackets))


def cut(tree: Tree, n_words: int, words_of: Tree) -> Tree:
    """The tree over its first words, and over the words of another tree."""
    brackets = [
        bracket._replace(end=min(bracket.end, n_words))
        for bracket in tree.brackets
        if bracket.start < n_words
    ]
    return Tree(words_of.words[:n_words], words_of.tags[:n_words], tuple(brackets))
