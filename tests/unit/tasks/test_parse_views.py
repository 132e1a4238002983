"""Human-readable trees: indented text and SVG."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from tests.property.tree_strategies import trees

from transept.apps.parse.drawing import draw_trees, indented
from transept.apps.svg import to_svg
from transept.text.trees import Bracket, Tree, parse_tree

CAT = parse_tree("(S (NP (DT The) (NN cat)) (VP (VBZ sleeps) (ADVP (RB here))) (. .))")


def svg(trees: list[Tree]) -> str:
    return to_svg(draw_trees(trees))


def test_indented_tree_has_expected_layout() -> None:
    assert indented(CAT).splitlines() == [
        "(S",
        "  (NP (DT The) (NN cat))",
        "  (VP",
        "    (VBZ sleeps)",
        "    (ADVP (RB here)))",
        "  (. .))",
    ]


@given(trees())
def test_indented_tree_parses_to_the_same_tree(tree: Tree) -> None:
    assert str(parse_tree(indented(tree))) == str(tree)


@given(trees())
def test_drawing_is_well_formed_and_complete(tree: Tree) -> None:
    root = ElementTree.fromstring(svg([tree, tree]))
    shown = [each.get("class") for each in root.iter() if each.tag.endswith("text")]
    assert shown.count("ink") == 2 * len(tree.words)
    assert shown.count("f0 strong") == 2 * len(tree.brackets)
    lines = [each for each in root.iter() if each.tag.endswith("line")]
    assert len(lines) == 2 * (len(tree.words) + len(tree.brackets) - 1)


def test_parents_are_centred_above_their_children() -> None:
    root = ElementTree.fromstring(svg([CAT]))
    texts = [each for each in root.iter() if each.tag.endswith("text")]
    at = {each.text: (float(each.get("x", 0)), float(each.get("y", 0))) for each in texts}
    assert at["NP"][0] == pytest.approx((at["The"][0] + at["cat"][0]) / 2, abs=0.1)
    assert at["S"][1] < at["VP"][1] < at["ADVP"][1] < at["here"][1] == at["The"][1]


def test_word_that_xml_cannot_express_is_replaced() -> None:
    drawn = svg([Tree(("\x01\ud800<&",), ("XX",), (Bracket("S", 0, 1),))])
    assert "\ufffd\ufffd<&" in ElementTree.fromstring(drawn.encode()).itertext()
