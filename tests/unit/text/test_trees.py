"""Reading, cleaning and writing trees."""

import lzma
from pathlib import Path

import pytest

from transept.errors import DataError
from transept.text.trees import (
    Bracket,
    Tree,
    TreeCleaning,
    clean,
    escape,
    parse_tree,
    parse_trees,
    plain,
    read_trees,
    unescape,
)

RAW = """( (S
    (NP-SBJ-1 (DT The) (NN cat) )
    (VP (VBZ wants)
      (S (NP (-NONE- *-1) )
         (VP (TO to) (VP (VB sleep) ) ) ) )
    (. .) ) )
"""


def test_parsed_tree_has_words_tags_and_brackets() -> None:
    assert parse_tree("(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))") == Tree(
        ("The", "cat", "sleeps"),
        ("DT", "NN", "VBZ"),
        (Bracket("S", 0, 3), Bracket("NP", 0, 2), Bracket("VP", 2, 3)),
    )


def test_treebank_layout_is_parsed() -> None:
    tree = parse_tree(RAW)
    assert str(tree) == (
        "( (S (NP-SBJ-1 (DT The) (NN cat)) (VP (VBZ wants) (S (NP (-NONE- *-1)) "
        "(VP (TO to) (VP (VB sleep))))) (. .)))"
    )
    assert str(clean(tree)) == (
        "(S (NP (DT The) (NN cat)) (VP (VBZ wants) (S (VP (TO to) (VP (VB sleep))))) (. .))"
    )


def test_trees_may_span_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg.xz"
    text = f"\ufeff{RAW}\n\n(X (A a)) (Y (B b))(Z(C c)(D d))\n(NN dog)\n  \n(S\n(NP (NN\ncat)))"
    file.write_bytes(lzma.compress(text.encode()))
    assert [str(tree) for tree in read_trees(file)][1:] == [
        "(X (A a))",
        "(Y (B b))",
        "(Z (C c) (D d))",
        "(NN dog)",
        "(S (NP (NN cat)))",
    ]


def test_unusual_words_are_preserved() -> None:
    line = (
        "(X (-LRB- -LRB-) (CD 10\u00a0000) (SYM \u2028) (NN 🐈) (: --) (`` ``) (PRP$ =) (NN a|b-c))"
    )
    assert str(parse_tree(line)) == line


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("(S (NN a))\n\n(S (NP the cat))", 3, "the word 'the' has no tag"),
        ("(S (NN a) dog)", 1, "the word 'dog' has no tag"),
        ("(S\n(NN a)\ndog)", 3, "the word 'dog' has no tag"),
        ("(S (NN a))\nhello", 2, "'hello' is outside of any tree"),
        ("(S (NN a)))", 1, "a closing bracket has no opening bracket"),
        ("(S (NN a))\n)(NN a)", 2, "a closing bracket has no opening bracket"),
        ("(S (NN a)\n(NP ))", 2, "a bracket holds no word"),
        ("(S (NN a)\n\n((NN b)))", 3, "a bracket inside a tree has no label"),
        ("()", 1, "a bracket holds no word"),
        ("(NN a)\n(S (NN a)\n(NN b)\n", 2, "the tree that begins here is not closed"),
    ],
)
def test_malformed_tree_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, what: str
) -> None:
    file = tmp_path / "damaged.mrg"
    file.write_text(text)
    with pytest.raises(DataError) as error:
        list(read_trees(file))
    assert str(error.value).startswith(f"{file}, line {line}: {what}; trees look like")


def test_unclosed_tree_does_not_read_a_large_file(tmp_path: Path) -> None:
    file = tmp_path / "large.mrg"
    file.write_text("(NN a)\n(S (NN a)\n" + "(S (NN a))\n" * 500_000)
    trees = read_trees(file)
    assert str(next(trees)) == "(NN a)"
    with pytest.raises(DataError, match="line 2: the tree that begins here is not closed"):
        next(trees)


def test_parse_tree_requires_exactly_one_tree() -> None:
    with pytest.raises(DataError, match="2 trees where one was expected"):
        parse_tree("(A (B b)) (A (B b))")
    assert parse_trees("") == []


def test_deep_tree_is_parsed() -> None:
    line = "(X " * 5000 + "(NN a)" + ")" * 5000
    assert str(parse_tree(line)) == line


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("(S (NP-SBJ=2 (NN a)))", "(S (NP (NN a)))"),
        ("(S (NP|X-1 (NN-HL a)))", "(S (NP|X (NN-HL a)))"),
        ("(S (-X-1 (NN a)))", "(S (-X-1 (NN a)))"),
        ("(S (NN a) (SBAR (-NONE- 0) (S (-NONE- *T*-1))) (. .))", "(S (NN a) (. .))"),
        ("(TOP (S (NN a)))", "(S (NN a))"),
        ("( (ROOT (S1 (S (NN a)))))", "(S (NN a))"),
        ("(TOP (NN a) (. .))", "(TOP (NN a) (. .))"),
        ("( (NP (NN a)) (. .))", "(TOP (NP (NN a)) (. .))"),
        ("( (NN a))", "(TOP (NN a))"),
        ("(NN a)", "(TOP (NN a))"),
        ("(S (TOP (NN a)))", "(S (TOP (NN a)))"),
    ],
)
def test_clean_returns_expected_tree(raw: str, cleaned: str) -> None:
    assert str(clean(parse_tree(raw))) == cleaned


def test_clean_returns_none_without_words() -> None:
    assert clean(parse_tree("(S (NP (-NONE- *)))")) is None


def test_clean_keeps_configured_annotations() -> None:
    tree = parse_tree("(TOP (NP-SBJ (-NONE- *) (NN a)))")
    assert clean(tree, TreeCleaning(labels="kept", traces="kept", root="kept")) == tree
    assert str(clean(tree, TreeCleaning(traces="kept"))) == "(NP (-NONE- *) (NN a))"
    assert str(clean(tree, TreeCleaning(labels="kept"))) == "(NP-SBJ (NN a))"
    assert str(clean(tree, TreeCleaning(root="kept"))) == "(TOP (NP (NN a)))"


def test_plain_removes_functions() -> None:
    assert [plain(label) for label in ("NP", "NP-SBJ-1", "NP=1", "-NONE-", "WHNP-1")] == [
        *("NP", "NP", "NP", "-NONE-", "WHNP")
    ]


def test_brackets_in_words_are_escaped() -> None:
    tree = Tree(("(", ":-)", "a"), ("(", "NFP", "NN"), (Bracket("X", 0, 3),))
    assert str(tree) == "(X (-LRB- -LRB-) (NFP :--RRB-) (NN a))"
    assert [unescape(word) for word in parse_tree(str(tree)).words] == ["(", ":-)", "a"]
    assert escape("plain") == "plain"
