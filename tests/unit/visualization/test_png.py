"""PNG: the same picture in pixels."""

import sys
from dataclasses import replace
from io import BytesIO

import pytest

from transept import Transducer
from transept.api.attention import Attention
from transept.errors import TranseptError
from transept.visualization.figures import Choice, FigureName, draw_figure
from transept.visualization.pictures import Cell, Line, Shape
from transept.visualization.png import SHARPNESS, to_png


@pytest.mark.parametrize("name", ["3", "4", "5", "heat"])
def test_it_has_the_size_of_the_svg_and_something_on_it(
    attention: Attention, name: FigureName
) -> None:
    image_module = pytest.importorskip("PIL.Image")
    picture = draw_figure(name, attention.joined(), Choice(word="end"))
    image = image_module.open(BytesIO(to_png(picture)))
    assert image.width == pytest.approx(SHARPNESS * picture.width, abs=1)
    assert image.height == pytest.approx(SHARPNESS * picture.height, abs=1)
    assert len(image.convert("RGB").getcolors(1 << 24)) > 50


def test_a_cell_is_as_dark_as_its_weight(attention: Attention) -> None:
    image_module = pytest.importorskip("PIL.Image")
    picture = draw_figure("heat", attention.joined(), Choice(heads=(1,)))
    image = image_module.open(BytesIO(to_png(picture))).convert("RGB")
    panel = picture.panels[1]
    for shape in panel.shapes:
        if isinstance(shape, Cell):
            x, y = panel.x + shape.x + shape.width / 2, panel.y + shape.y + shape.height / 2
            red, _, _ = image.getpixel((int(SHARPNESS * x), int(SHARPNESS * y)))
            # From white to a red of 8.
            assert (255 - red) / (255 - 8) == pytest.approx(shape.weight / shape.full, abs=0.01)


def test_a_line_whose_weight_exceeds_1_by_rounding_is_opaque(attention: Attention) -> None:
    pytest.importorskip("PIL.Image")
    picture = draw_figure("5", attention.joined(), Choice(heads=(1, 2)))
    panels = tuple(
        replace(one, shapes=tuple(map(rounded_up, one.shapes))) for one in picture.panels
    )
    assert to_png(replace(picture, panels=panels))
    lines = [one for panel in panels for one in panel.shapes if isinstance(one, Line)]
    assert {line.opacity for line in lines} == {1.0}


def rounded_up(shape: Shape) -> Shape:
    return replace(shape, weight=1.000001) if isinstance(shape, Line) else shape


def test_without_matplotlib_the_extra_is_named(
    attention: Attention, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TranseptError, match=r"pip install 'transept\[plots\]'"):
        to_png(draw_figure("5", attention, Choice()))


def test_a_letter_that_no_font_has_is_named(looking: Transducer) -> None:
    attention = looking.attend("one \U0010fffd", "two")
    with pytest.raises(TranseptError, match=r"no font here can write it \(Glyph 1114109"):
        to_png(draw_figure("5", attention.joined(), Choice()))
