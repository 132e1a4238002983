"""Whatever a tree looks like, it comes back as it was."""

import math
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from tests.property.tree_strategies import trees

from transept.evaluation.evalb.parameters import COLLINS, Parameters
from transept.evaluation.evalb.scoring import score_sentence
from transept.tasks.parsing.consensus import consensus
from transept.tasks.parsing.leaves import Named
from transept.tasks.parsing.leaves import named as named_leaf
from transept.tasks.parsing.linearisation import delinearise, fault_of, linearise
from transept.tasks.parsing.recombination import exchange, recombined
from transept.tasks.parsing.repair import repair
from transept.tasks.parsing.vocabulary import tree_vocabulary
from transept.text.trees import Bracket, Cleaning, Tree, clean, parse_tree, read_trees

SPACES = st.sampled_from([" ", "  ", "\t", "\n", "\n\n  ", "\r\n", "\f"])


@given(trees())
def test_writing_and_reading(tree: Tree) -> None:
    assert parse_tree(str(tree)) == tree


@given(st.lists(trees(max_words=4), max_size=4), st.lists(SPACES, min_size=1), st.data())
def test_trees_in_a_file_however_they_are_spaced(
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
def test_linearising_and_its_inverse(tree: Tree) -> None:
    # Some of its words, as if they were the common ones.
    named = Named(frozenset(map(named_leaf, tree.tags[::2], tree.words[::2])))
    for tags in ("XX", "kept", named):
        symbols = linearise(tree, tags)
        assert fault_of(symbols, len(tree.words)) is None
        assert delinearise(symbols, tree.words, tree.tags) == tree
        assert repair(symbols, tree.words, tree.tags) == tree
        assert len(symbols) == 2 * len(tree.brackets) + len(tree.words)
    assert delinearise(linearise(tree, "kept"), tree.words) == tree
    assert delinearise(linearise(tree, named), tree.words) == tree


@given(trees())
def test_symbols_are_ids_and_back(tree: Tree) -> None:
    vocabulary = tree_vocabulary([tree], "kept")
    line = " ".join(linearise(tree, "kept"))
    assert vocabulary.decode(vocabulary.encode(line)) == line


@given(
    st.lists(st.sampled_from(["(A", "(B", ")A", ")B", "XX", "NN", "<unk>"]), max_size=20),
    st.integers(1, 6),
)
def test_a_repair_is_a_tree_over_the_words(symbols: list[str], n_words: int) -> None:
    words = [f"w{number}" for number in range(n_words)]
    mended = repair(symbols, words)
    assert mended.words == tuple(words)
    assert delinearise(linearise(mended, "kept"), words) == mended
    if fault_of(symbols, n_words) is None:
        assert linearise(mended, "kept") == symbols


@given(trees())
def test_cleaning_twice_changes_nothing_more(tree: Tree) -> None:
    cleaned = clean(tree)
    if cleaned is not None:
        assert clean(cleaned) == cleaned
        assert "-NONE-" not in cleaned.tags
        assert cleaned.brackets[0][1:] == (0, len(cleaned.words))
    assert clean(tree, Cleaning(labels="kept", traces="kept", root="kept")) == tree


@given(trees())
def test_a_tree_scores_whole_against_itself(tree: Tree) -> None:
    for parameters in (COLLINS, Parameters()):
        score = score_sentence(str(tree), str(tree), parameters)
        if score.status == "valid":
            assert score.complete
            assert (score.crossing, score.right_tags) == (0, score.words)
        else:
            assert all(tag in parameters.deleted for tag in tree.tags)


@given(trees(), trees())
def test_matches_are_those_of_multisets(one: Tree, other: Tree) -> None:
    """Without equal labels evalb's pairing finds as many as there are in both."""
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
    """The tree over its first words, and over another's words."""
    brackets = [
        bracket._replace(end=min(bracket.end, n_words))
        for bracket in tree.brackets
        if bracket.start < n_words
    ]
    return Tree(words_of.words[:n_words], words_of.tags[:n_words], tuple(brackets))


@given(trees(), trees(), st.data())
def test_a_constituent_of_another_tree(tree: Tree, donor: Tree, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(tree.brackets) - 1))
    donated = data.draw(st.integers(0, len(donor.brackets) - 1))
    other = exchange(tree, number, donor, donated)
    assert parse_tree(str(other)) == other
    # It is back as it was when it gets its own again.
    assert exchange(other, number, tree, number) == tree
    assert exchange(donor, donated, other, number) == donor
    assert exchange(tree, number, tree, number) == tree


@given(st.lists(trees(), min_size=1, max_size=5), st.integers(0, 3), st.floats(0.1, 1))
def test_recombined_trees_hold_what_others_hold(
    several: list[Tree], seed: int, chance: float
) -> None:
    known = set().union(*map(parents, several))
    found = list(recombined(several, 3, seed=seed, chance=chance))
    assert len(found) <= 3 * len(several)
    assert found == list(recombined(several, 3, seed=seed, chance=chance))
    for tree in found:
        assert parse_tree(str(tree)) == tree
        assert tree not in several or len(several) > 1
        assert parents(tree) <= known


@given(st.data(), st.integers(1, 7))
def test_what_trees_agree_on_is_a_tree(data: st.DataObject, n_words: int) -> None:
    words = tuple(f"w{at}" for at in range(n_words))
    several = [
        Tree(words, words, each.brackets)
        for each in data.draw(st.lists(trees(min_words=n_words, max_words=n_words), min_size=1))
    ]
    chances = st.floats(-20, 0)
    log_p = data.draw(st.lists(chances, min_size=len(several), max_size=len(several)))
    agreed = consensus(several, log_p)
    assert parse_tree(str(agreed)) == agreed
    total = math.fsum(map(math.exp, log_p))
    for bracket, most in Counter(agreed.brackets[1:]).items():
        holders = [p for p, tree in zip(log_p, several, strict=True)
                   if tree.brackets.count(bracket) >= most]  # fmt: skip
        assert math.fsum(map(math.exp, holders)) > total / 2 * (1 - 1e-9)
    # A tree that most of the probability is for is what they agree on.
    assert consensus([*several, agreed], [*log_p, 10.0]) == agreed


def parents(tree: Tree) -> set[tuple[str, str]]:
    """Labels, each with that of the constituent around it."""
    around: list[Bracket] = []
    found = set()
    for bracket in tree.brackets:
        while around and around[-1].end <= bracket.start:
            around.pop()
        found.add((bracket.label, around[-1].label if around else ""))
        around.append(bracket)
    return found
