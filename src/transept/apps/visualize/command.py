"""`transept visualize`: attention weights, as in the paper's Figures 3 to 5."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from transept.cli.models import ANY_MODEL, MODEL_OPTIONS, Models
from transept.errors import ConfigError, DataError, TooLongError
from transept.runtime.interrupt import import_torch
from transept.runtime.storage import write_file

if TYPE_CHECKING:
    from transept.api.attention import Attention
    from transept.apps.visualize.figures import Choice

FigureName = Literal["3", "4", "5", "heat"]
Kind = Literal["encoder", "decoder", "source"]
Tokens = Literal["words", "pieces"]
FORMATS = (".svg", ".html", ".json")


@dataclass(frozen=True, kw_only=True)
class View:
    """The content of a drawing."""

    figure: FigureName = "5"
    """3: several heads of one layer, for one word. 4: one head for all words, and below it two
    heads for one word. 5: heads for all words, one below the other. heat: a heat map per head."""
    kind: Kind = "encoder"
    """Self-attention of the encoder or of the decoder, or the decoder's attention to the source."""
    layer: int | None = None
    """The layer to draw. Default: the second to last, as in the paper (5 of 6)."""
    heads: str | None = None
    """The heads to draw, such as 1,2 or 1-4. Default: all heads for figures 3 and heat, otherwise
    the first two."""
    word: str | None = None
    """The word whose attention figures 3 and 4 draw: the word itself or its position from 1."""
    tokens: Tokens = "words"
    """Merge subwords into words, or show the subwords (pieces). Attention to a word is summed over
    its subwords; attention from a word is averaged over them."""

    def choice(self) -> "Choice":
        """The options of the drawing functions."""
        from transept.apps.visualize.figures import Choice

        return Choice(kind=self.kind, layer=self.layer, heads=_numbers(self.heads), word=self.word)


USUAL = View()
VIEW = Parameter(name="*", group=Group("View", sort_key=2))


def visualize(
    sentence: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    target: str | None = None,
    models: Annotated[Models, MODEL_OPTIONS] = ANY_MODEL,
    view: Annotated[View, VIEW] = USUAL,
) -> None:
    """Draw attention weights, as in the paper's Figures 3 to 5.

    Lines connect each word above (query) with the words below (keys) that it attends to. The width
    of a line shows the weight, its colour the head. Layers and heads are numbered from 1. `.html`
    is an interactive page with all layers and heads that works offline. `.json` contains all
    weights.

    Args:
        sentence: The source sentence.
        output: The output file. Its suffix selects the format: .svg, .html or .json.
        target: The translation. Default: the model's output.
        models: The model to use.
        view: The content of the drawing.
    """
    if output.suffix not in FORMATS:
        raise ConfigError(f"{output}: its name must end in one of {', '.join(FORMATS)}")
    import_torch()
    choice = view.choice()
    if output.suffix == ".svg":
        _check(view.figure, choice)
    content = _content(output.suffix, _attention(models, sentence, target), view, choice)
    try:
        write_file(output, content)
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error.strerror}); choose another path"
        ) from error
    sys.stderr.write(f"{output}: {len(content) / 1000:,.0f} kB\n")


def _check(figure: FigureName, choice: "Choice") -> None:
    """Reject a word or heads that the figure would not show."""
    if choice.word is not None and figure in ("5", "heat"):
        raise ConfigError(
            f"figure {figure} shows all words: omit --word, or choose --figure 3 or 4"
        )
    if figure == "4" and len(choice.heads) > 2:
        raise ConfigError("figure 4 shows two heads: give fewer --heads, or choose --figure 3")


def _attention(models: Models, sentence: str, target: str | None) -> "Attention":

    try:
        return models.load().attend(sentence, target)
    except TooLongError as error:
        raise DataError(f"{error.what}; choose a shorter one") from error


def _content(suffix: str, attention: "Attention", view: View, choice: "Choice") -> bytes:
    if suffix == ".html":
        from transept.apps.visualize.html import to_html

        return to_html(attention, choice, view.tokens).encode()
    if view.tokens == "words":
        attention = attention.joined()
    if suffix == ".json":
        return (json.dumps(attention.described(), ensure_ascii=False) + "\n").encode()
    from transept.apps.svg import to_svg
    from transept.apps.visualize.figures import draw_figure

    return to_svg(draw_figure(view.figure, attention, choice)).encode()


def _numbers(heads: str | None) -> tuple[int, ...]:
    """Parse head numbers such as `1,2` or `1-4`."""
    numbers: list[int] = []
    for part in heads.split(",") if heads is not None else []:
        found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise ConfigError(f"--heads {heads}: write numbers such as 1,2 or 1-4")
        numbers += range(int(found[1]), int(found[2] or found[1]) + 1)
    return tuple(numbers)
