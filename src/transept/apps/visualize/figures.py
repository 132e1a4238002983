"""The paper's Figures 3 to 5 and a grid of heat maps, for any sentence pair, layer and heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from transept.api.attention import Attention, AttentionMap, Kind
from transept.apps.svg import Picture, arranged
from transept.apps.visualize.panels import draw_heat_maps, draw_lines
from transept.errors import Argument, ConfigError

FigureName = Literal["3", "4", "5", "heat"]

NAMES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "source": "Encoder-decoder attention",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Which attention weights to draw. Layers and heads are numbered from 1."""

    kind: Kind = "encoder"
    layer: int | None = None
    """Default: the second to last, as in the paper: 5 of 6."""
    heads: tuple[int, ...] = ()
    """Default: the first heads, as many as the figure shows."""
    word: str | None = None
    """The query word, or its position from 1."""


def draw_figure(name: FigureName, attention: Attention, choice: Choice) -> Picture:
    """Draw a figure of the paper.

    3: several heads of one layer, for one word. 4: one head for all words, and below it two heads
    for one word. 5: two heads for all words, one below the other. heat: a heat map per head.

    Args:
        name: The figure.
        attention: Between subwords, or `joined()` between words.
        choice: Kind, layer, heads and word.
    """
    chosen = attention.of(choice.kind)
    layer, n_heads = _layer(chosen, choice), chosen.weights.shape[1]
    wanted = {"3": n_heads, "4": 2, "5": 2, "heat": n_heads}[name]
    heads = _heads(choice.heads or range(1, min(wanted, n_heads) + 1), n_heads)
    title, word = NAMES[choice.kind], None
    if name in ("3", "4"):
        word = _word(chosen, choice)
        whole = "" if name == "3" else " in full, and"
        title += f"{whole} from “{_plain(chosen.queries.pieces[word])}”"
    match name:
        case "3":
            rows = [[draw_lines(chosen, layer, heads, word)]]
        case "4":
            heads = heads[:2]
            rows = [
                [draw_lines(chosen, layer, heads[:1])],
                [draw_lines(chosen, layer, heads, word)],
            ]
        case "5":
            rows = [[draw_lines(chosen, layer, [head])] for head in heads]
        case "heat":
            rows = draw_heat_maps(chosen, layer, heads)
    return arranged(title, _description(chosen, layer, heads, word), rows)


def resolve(attention: AttentionMap, choice: Choice) -> tuple[int, list[int], int | None]:
    """The layer, the heads and the word of a choice, numbered from 0.

    The heads default to all heads if a word is chosen, otherwise to the first head.
    """
    n_heads = attention.weights.shape[1]
    word = None if choice.word is None else find_word(attention.queries.pieces, choice.word)
    heads = _heads(choice.heads or range(1, 2 if word is None else n_heads + 1), n_heads)
    return _layer(attention, choice), heads, word


def find_word(words: Sequence[str], wanted: str) -> int:
    """The index of a word from 0, given its spelling (first match) or its position from 1."""
    for spelt in (str, str.casefold):
        for number, word in enumerate(words):
            if spelt(word.lstrip("▁")) == spelt(wanted):
                return number
    if wanted.isdecimal() and 1 <= int(wanted) <= len(words):
        return int(wanted) - 1
    raise ConfigError(f"word {wanted!r} not found; the words are: {' '.join(words)}")


def _layer(attention: AttentionMap, choice: Choice) -> int:
    n_layers = attention.weights.shape[0]
    layer = max(1, n_layers - 1) if choice.layer is None else choice.layer
    if not 1 <= layer <= n_layers:
        raise ConfigError(f"layer {layer}: the model has {_range(n_layers, 'layer')}")
    return layer - 1


def _heads(wanted: Sequence[int], n_heads: int) -> list[int]:
    for head in wanted:
        if not 1 <= head <= n_heads:
            raise ConfigError(f"head {head}: the model has {_range(n_heads, 'head')}")
    if len(set(wanted)) < len(wanted):
        raise ConfigError("a head is given twice; give each head once")
    return [head - 1 for head in wanted]


def _range(n: int, what: str) -> str:
    return f"one {what}" if n == 1 else f"{what}s 1 to {n}"


def _word(attention: AttentionMap, choice: Choice) -> int:
    words = attention.queries.pieces
    if choice.word is None:
        raise ConfigError(
            "the figure shows the attention of one word; set ", Argument("word"),
            f" to one of: {' '.join(words)}",
        )  # fmt: skip
    return find_word(words, choice.word)


def _description(
    attention: AttentionMap, layer: int, heads: Sequence[int], word: int | None = None
) -> str:
    """Alternative text: the largest weight of each word and head."""
    queries, keys = attention.queries.pieces, attention.keys.pieces
    sentences = []
    for head in heads:
        weights = attention.weights[layer, head]
        most = []
        for query in range(len(queries)) if word is None else [word]:
            weight, key = weights[query].max(dim=0)
            looks = f"{_plain(queries[query])} → {_plain(keys[int(key)])} ({float(weight):.2f})"
            most.append(looks)
        sentences.append(f"Layer {layer + 1}, head {head + 1} looks most: {', '.join(most)}.")
    return " ".join(sentences)


def _plain(piece: str) -> str:
    return piece.lstrip("▁") or piece
