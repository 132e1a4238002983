"""Figures show the weights of the model and label them."""

from itertools import product
from xml.etree import ElementTree

import pytest
import torch
from tests.unit.apps.visualize.conftest import NASTY

from transept.api.attention import KINDS, Attention, AttentionMap, Kind, Side
from transept.apps.svg import LINE_WIDTH, Label, text_width, to_svg
from transept.apps.visualize.figures import Choice, FigureName, draw_figure
from transept.errors import ConfigError

SVG = "{http://www.w3.org/2000/svg}"
CLOSE = 1e-3
PLACE = ("head", "query", "key")
Where = tuple[int, int, int]
FIGURES: tuple[FigureName, ...] = ("3", "4", "5", "heat")


def parsed(name: FigureName, attention: Attention, choice: Choice) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(draw_figure(name, attention, choice)))


def weights_of(panel: ElementTree.Element, tag: str) -> dict[Where, float]:
    """By head, query and key, from 0. A duplicate is an error."""
    drawn = {}
    for shape in panel.iter(f"{SVG}{tag}"):
        if "data-weight" not in shape.attrib:
            continue
        head, query, key = (int(shape.attrib[f"data-{name}"]) - 1 for name in PLACE)
        assert (head, query, key) not in drawn
        drawn[head, query, key] = float(shape.attrib["data-weight"])
    return drawn


def assert_drawn(drawn: dict[Where, float], weights: torch.Tensor, places: set[Where]) -> None:
    assert drawn.keys() <= places
    for head, query, key in places:
        true = float(weights[head, query, key])
        assert drawn.get((head, query, key), 0.0) == pytest.approx(true, abs=CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joined", ["pieces", "words"])
def test_every_line_shows_its_weight(attention: Attention, kind: Kind, joined: str) -> None:
    shown = attention.joined() if joined == "words" else attention
    found = shown.of(kind)
    choice = Choice(kind=kind, layer=3, heads=(4, 2), word="2")
    queries, keys = range(len(found.queries.pieces)), range(len(found.keys.pieces))
    weights = found.weights[2]

    (panel,) = parsed("3", shown, choice).findall(f"{SVG}g")[1:]
    from_word = set(product((3, 1), (1,), keys))
    assert_drawn(weights_of(panel, "line"), weights, from_word)
    assert_drawn(weights_of(panel, "rect"), weights, from_word)

    whole, below = parsed("4", shown, choice).findall(f"{SVG}g")[1:]
    assert_drawn(weights_of(whole, "line"), weights, set(product((3,), queries, keys)))
    assert_drawn(weights_of(below, "line"), weights, from_word)

    for head, panel in zip((3, 1), parsed("5", shown, choice).findall(f"{SVG}g")[1:], strict=True):
        assert_drawn(weights_of(panel, "line"), weights, set(product((head,), queries, keys)))

    maps = parsed("heat", shown, choice).findall(f"{SVG}g")[1:-1]
    for head, panel in zip((3, 1), maps, strict=True):
        drawn = weights_of(panel, "rect")
        assert len(drawn) == len(queries) * len(keys)
        assert_drawn(drawn, weights, set(product((head,), queries, keys)))


def test_line_width_and_cell_opacity_are_proportional_to_weight(attention: Attention) -> None:
    choice = Choice(heads=(1,))
    for line in parsed("5", attention, choice).iter(f"{SVG}line"):
        weight = float(line.attrib["data-weight"])
        assert float(line.attrib["stroke-width"]) / LINE_WIDTH == pytest.approx(weight, abs=CLOSE)
    full = float(attention.encoder.weights[1, 0].max())
    for cell in parsed("heat", attention, choice).iter(f"{SVG}rect"):
        if "data-weight" in cell.attrib:
            opacity = float(cell.attrib["fill-opacity"])
            weight = float(cell.attrib["data-weight"])
            assert opacity * full == pytest.approx(weight, abs=CLOSE)


def test_lines_connect_query_and_key(attention: Attention) -> None:
    """The ends of a line have the x of the labels of the query and the key."""
    shown = attention.joined()
    panel = parsed("5", shown, Choice(kind="source", heads=(1,))).findall(f"{SVG}g")[1]
    labels = list(panel.iter(f"{SVG}text"))[2:]
    xs = [label.attrib["x"] for label in labels]
    n_queries = len(shown.cross.queries.pieces)
    for line in panel.iter(f"{SVG}line"):
        query, key = (int(line.attrib[f"data-{name}"]) - 1 for name in ("query", "key"))
        assert (line.attrib["x1"], line.attrib["x2"]) == (xs[query], xs[n_queries + key])
    words = [label.text for label in labels]
    assert words == [*shown.cross.queries.words, *shown.cross.keys.words]


def test_default_choice_matches_the_paper(attention: Attention) -> None:
    titles = [
        panel.attrib["aria-label"]
        for panel in parsed("5", attention, Choice()).findall(f"{SVG}g")[1:]
    ]
    assert titles == ["Layer 2, head 1", "Layer 2, head 2"]
    (panel,) = parsed("3", attention, Choice(word="end")).findall(f"{SVG}g")[1:]
    assert panel.attrib["aria-label"] == "Layer 2, heads 1, 2, 3, 4"


@pytest.mark.parametrize("name", FIGURES)
def test_figure_has_alternative_text_and_escapes_text(nasty: Attention, name: FigureName) -> None:
    root = parsed(name, nasty.joined(), Choice(word="1"))
    title, description = (root.findtext(f"{SVG}{tag}") for tag in ("title", "desc"))
    assert title
    assert title.startswith("Encoder self-attention")
    assert description
    assert "Layer 2, head 1 looks most: </ → " in description
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"</", "script", "><!--", "&"} <= {*texts}
    # A bell cannot be written in XML.
    assert "\x07" in NASTY
    assert "\ufffd" in texts


@pytest.mark.parametrize("name", FIGURES)
def test_picture_of_sixty_words_fits_its_size(name: FigureName) -> None:
    words = tuple(f"word{number}" for number in range(60))
    side = Side(words, words, tuple(range(60)))
    weights = torch.rand(2, 16, 60, 60).softmax(dim=-1)
    many = AttentionMap(side, side, weights)
    shown = Attention("", "", many, many, many)
    picture = draw_figure(name, shown, Choice(word="word59", heads=tuple(range(1, 5))))
    for panel in picture.panels:
        assert panel.x >= 0
        assert panel.x + panel.width <= picture.width
        assert panel.y + panel.height <= picture.height
        for shape in panel.shapes:
            if isinstance(shape, Label) and shape.upright:
                above = shape.anchor == "start"
                top = shape.y - text_width(shape.text) if above else shape.y
                assert top >= 0
                assert (shape.y if above else top + text_width(shape.text)) <= panel.height


def test_heads_with_the_same_colour_have_different_dashes() -> None:
    side = Side(("a", "b"), ("a", "b"), (0, 1))
    one = AttentionMap(side, side, torch.full((1, 16, 2, 2), 0.5))
    root = parsed("3", Attention("", "", one, one, one), Choice(word="a"))
    classes = {line.attrib["data-head"]: line.attrib["class"] for line in root.iter(f"{SVG}line")}
    assert len(set(classes.values())) == 16
    # Their names are wider than two words, and still fit.
    (sheet,) = draw_figure("3", Attention("", "", one, one, one), Choice(word="a")).panels[1:]
    notes = [shape for shape in sheet.shapes if isinstance(shape, Label) and shape.style == "note"]
    assert len(notes) == 17
    assert min(note.x - text_width(note.text) / 2 for note in notes) >= 0
    assert max(note.x + text_width(note.text) / 2 for note in notes) <= sheet.width


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(layer=4, word="end"), "layer 4: the model has layers 1 to 3"),
        (Choice(layer=0, word="end"), "layer 0: the model has layers 1 to 3"),
        (Choice(heads=(1, 5), word="end"), "head 5: the model has heads 1 to 4"),
        (Choice(heads=(2, 2), word="end"), "a head is given twice"),
        (Choice(word="ending"), "word 'ending' not found; the words are: one two three ,"),
        (Choice(word="11"), "word '11' not found"),
        (Choice(), "set `word` to one of: one two"),
    ],
)
def test_invalid_choice_is_rejected(attention: Attention, choice: Choice, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        draw_figure("3", attention.joined(), choice)
