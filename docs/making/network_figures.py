"""Figures 1 and 2 of the paper, drawn again with the shapes and numbers of a run.

`docs/live/figures.js` replaces pictures (`data-slot`), shapes (`data-shape`) and texts
(`data-text`) with those of a reader's own run.
"""

from collections.abc import Sequence
from html import escape

from making.recorded import HEAD, LAYER, Run, picture

N_WORDS = 5
"""The number of next subwords that Figure 1 shows."""


def figure_1(run: Run, chapters: dict[str, str]) -> str:
    """The architecture. Each box links the chapter that explains it.

    Args:
        run: The shapes and numbers.
        chapters: The addresses of chapters, by topic.
    """
    stacks, attention, words = (chapters[name] for name in ("stacks", "attention", "words"))
    encoder, decoder = _Column(152, 0, 309, run), _Column(418, 606, 409, run)
    parts = [
        _frame(134, 332, 186, 230),
        _frame(400, 206, 186, 356),
        *_text(235, 322, "N = 8 layers", "quiet", slot="encoder.depth"),
        *_text(392, 222, "N = 3 layers", "quiet end", slot="decoder.depth"),
        # The encoder's output is the source of keys and values.
        _line("M227 344V306H361V412H463V396", arrow=True),
        _line("M463 412H493V396", arrow=True),
        *_text(367, 318, "K, V", "quiet"),
        *_text(528, 420, "Q", "quiet"),
        *encoder.box(626, 34, ["Input embedding"], "embed", words),
        *encoder.sum(598, "encoder.input", words),
        *encoder.box(468, 42, ["Multi-head", "attention"], "attend", attention),
        *encoder.norm(432, "encoder.attended", stacks, 540),
        *encoder.box(380, 34, ["Feed forward"], "forward", words),
        *encoder.norm(344, "encoder.output", stacks, 425),
        *decoder.box(626, 34, ["Output embedding"], "embed", words),
        *decoder.sum(598, "decoder.input", words),
        *decoder.box(468, 42, ["Masked multi-head", "attention"], "attend", attention),
        *decoder.norm(432, "decoder.masked", stacks, 540),
        *decoder.box(354, 42, ["Multi-head", "attention"], "attend", attention),
        *decoder.norm(318, "decoder.attended", stacks, 424),
        *decoder.box(254, 34, ["Feed forward"], "forward", words),
        *decoder.norm(218, "decoder.output", stacks, 304),
        *decoder.box(164, 28, ["Linear"], "project", words),
        *decoder.box(124, 28, ["Softmax"], "project", words),
        *_stem(227, ((700, 660), (626, 606), (590, 510), (468, 458), (432, 414), (380, 370))),
        *_stem(493, ((700, 660), (626, 606), (590, 510), (468, 458), (318, 288), (254, 244))),
        *_stem(493, ((218, 192), (164, 152), (124, 108))),
        _line("M523 432V396", arrow=True),
        _line("M493 354V344", arrow=True),
        *_text(227, 714, "Inputs", "strong middle"),
        *_text(227, 732, _short(run.source), "middle quiet", slot="source"),
        *_text(493, 714, "Outputs (shifted right)", "strong middle"),
        *_text(493, 732, _short(run.output), "middle quiet", slot="output"),
        *_words(run),
    ]
    alt = (
        "The architecture of the Transformer with the numbers of this run. Encoder, left, from "
        "below: embedding plus positional encoding, then layers of multi-head attention and a "
        "feed-forward network, each with add and norm. Decoder, right: the same with masked "
        "attention, and a second attention that reads the encoder's output; then a linear layer "
        "and the softmax over the vocabulary."
    )
    return _svg("net figure-1", 724, 744, alt, parts)


def figure_2(run: Run) -> str:
    """Scaled dot-product attention of one head, and multi-head attention."""
    parts = [
        *_text(0, 16, "Scaled dot-product attention", "strong"),
        *_text(0, 34, f"encoder layer {LAYER + 1}, head {HEAD + 1}", "quiet", slot="attention"),
        *_matrix(run, "attention.head", "head", 90, 50, 100, 50, side=True),
        *_operation(40, 120, 280, "MatMul", "attend"),
        *_matrix(run, "attention.weights", "weights", 196, 168, 64, 64),
        *_operation(40, 186, 138, "Softmax", "project"),
        *_operation(40, 256, 138, "Mask (optional)", "embed"),
        *_matrix(run, "attention.scores", "Q Kᵀ / √d_k", 196, 266, 64, 64),
        *_operation(40, 306, 138, "Scale: 1 / √d_k", "forward"),
        *_operation(0, 360, 218, "MatMul", "attend"),
        *_matrix(run, "attention.q", "Q", 0, 412, 100, 64),
        *_matrix(run, "attention.k", "K", 118, 412, 100, 64),
        *_matrix(run, "attention.v", "V", 248, 412, 100, 64),
        *_stem(109, ((360, 334), (306, 284), (256, 214), (186, 148))),
        *_stem(50, ((412, 388),)),
        *_stem(168, ((412, 388),)),
        *_stem(298, ((412, 148),)),
        *_stem(140, ((120, 102),)),
        *_text(400, 16, "Multi-head attention", "strong"),
        *_text(400, 34, "all heads of the layer", "quiet"),
        *_matrix(run, "attention.output", "output", 486, 50, 120, 50, side=True),
        *_operation(410, 120, 300, "Linear: W_O", "project"),
        *_matrix(run, "attention.concat", "heads", 486, 168, 120, 50, side=True),
        *_operation(410, 240, 300, "Concat", "forward"),
        _frame(402, 290, 316, 106),
        *(
            part
            for n in range(4)
            for part in _matrix(
                run, f"attention.weights.{n}", f"head {n + 1}", 416 + 76 * n, 304, 60, 60
            )
        ),
        *_operation(402, 420, 100, "Linear: W_V", "project"),
        *_operation(510, 420, 100, "Linear: W_K", "project"),
        *_operation(618, 420, 100, "Linear: W_Q", "project"),
        *_stem(452, ((474, 448), (420, 398))),
        *_stem(560, ((474, 448), (420, 398), (290, 270))),
        *_stem(546, ((240, 220), (168, 150), (120, 102))),
        *_stem(668, ((474, 448), (420, 398))),
        *_text(452, 490, "V", "middle"),
        *_text(560, 490, "K", "middle"),
        *_text(668, 490, "Q", "middle"),
    ]
    alt = (
        "Figure 2 of the paper with numbers. Left: queries times keys, divided by the square root "
        "of d_k, give scores; a softmax turns each row into attention weights; weights times "
        "values are the output of a head. Right: four heads with different attention weights, "
        "concatenated and projected."
    )
    return _svg("net figure-2", 724, 498, alt, parts)


class _Column:
    """The boxes of a stack, the pictures beside it, and the residual connections."""

    def __init__(self, x: int, beside: int, residual: int, run: Run) -> None:
        self.x, self.beside, self.residual, self.run = x, beside, residual, run

    def box(self, y: int, height: int, lines: Sequence[str], kind: str, link: str) -> list[str]:
        return _box(self.x, y, 150, height, lines, kind, link)

    def norm(self, y: int, slot: str, link: str, start: int) -> list[str]:
        """Add & norm, with its output beside it, and the residual connection from `start`."""
        edge = self.x + (150 if self.residual > self.x else 0)
        # The queries of the decoder's second attention arrive on the right.
        begin = self.x + (105 if slot == "decoder.attended" else 75)
        return [
            *_box(self.x, y, 150, 26, ["Add & norm"], "norm", link),
            _line(f"M{begin} {start}H{self.residual}V{y + 13}H{edge}", arrow=True),
            *self._beside(slot, y + 13, self.x if self.beside < self.x else self.x + 150),
        ]

    def sum(self, y: int, slot: str, link: str) -> list[str]:
        """Embedding plus positional encoding."""
        x = self.x + 75
        inner = self.residual + (26 if self.residual > self.x else -26)
        wave = f"M{inner - 9} {y}q4.5 -10 9 0t9 0"
        near = x + 8 if inner > x else x - 8
        edge = inner - 13 if inner > x else inner + 13
        return [
            f'<circle class="joint" cx="{x}" cy="{y}" r="8"/>',
            _line(f"M{x - 5} {y}H{x + 5}M{x} {y - 5}V{y + 5}"),
            f'<a href="{link}"><title>Positional encoding</title>'
            f'<circle class="joint" cx="{inner}" cy="{y}" r="13"/>{_line(wave)}</a>',
            _line(f"M{edge} {y}H{near}", arrow=True),
            *self._beside(slot, y, x - 8 if self.beside < x else x + 8),
        ]

    def _beside(self, slot: str, y: int, edge: int) -> list[str]:
        near = self.beside + 118 if self.beside < self.x else self.beside
        return [
            _line(f"M{near} {y}H{edge}", "leader"),
            *_matrix(self.run, slot, "", self.beside, y - 26, 118, 44),
        ]


def _words(run: Run) -> list[str]:
    """The likeliest subwords at the step where the network is least certain."""
    top = run.probabilities[run.hardest].topk(N_WORDS)
    parts = [*_text(493, 12, "Output probabilities", "strong middle")]
    y = 34
    for n, (p, number) in enumerate(zip(*(part.tolist() for part in top), strict=True)):
        piece = run.vocabulary[number].replace("▁", "·")
        parts += [
            f'<rect class="bar" data-bar="{n}" x="428" y="{y - 9}" width="{1 + 49 * p:.1f}" '
            'height="10" rx="2"/>',
            *_text(484, y, f"{p:.2f}", "number", slot=f"p{n}"),
            *_text(514, y, _short(piece, 10), "", slot=f"word{n}"),
        ]
        y += 17
    return parts


def _svg(kind: str, width: int, height: int, alt: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {width} {height}" '
        f'role="group" aria-label="{escape(alt)}">'
    )
    # Figures 1 and 2 are on one page, so the names of their arrows differ.
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return "\n".join([head, arrow, *parts, "</svg>"]).replace("arrow", kind.replace(" ", "-"))


def _box(
    x: int, y: int, width: int, height: int, lines: Sequence[str], kind: str, link: str
) -> list[str]:
    first = y + height / 2 + 4.5 - 8 * (len(lines) - 1)
    texts = [
        part
        for n, line in enumerate(lines)
        for part in _text(x + width / 2, first + 16 * n, line, "middle")
    ]
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    return [f'<a class="box {kind}" href="{link}">', shape, *texts, "</a>"]


def _operation(x: int, y: int, width: int, label: str, kind: str) -> list[str]:
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="28" rx="6"/>'
    return [
        f'<g class="box {kind}">',
        shape,
        *_text(x + width / 2, y + 18.5, label, "middle"),
        "</g>",
    ]


def _matrix(
    run: Run, slot: str, name: str, x: int, y: int, width: int, height: int, *, side: bool = False
) -> list[str]:
    """The picture of a matrix, with its name and shape below it, or at its right side."""
    matrix = run.tensors[slot]
    is_weights = slot.startswith("attention.weights")
    shape = f'<tspan data-shape="{slot}">({matrix.shape[0]}, {matrix.shape[1]})</tspan>'
    label = escape(name) if slot.startswith("attention.weights.") else f"{escape(name)} {shape}"
    below = (x + width / 2, y + height + 14, "middle quiet")
    left, top, kind = (x + width + 8, y + height / 2 + 4, "quiet") if side else below
    return [
        f'<image data-slot="{slot}" x="{x}" y="{y}" width="{width}" height="{height}" '
        f'preserveAspectRatio="none" href="{picture(matrix, 1.0 if is_weights else None)}"/>',
        f'<rect class="edge" x="{x}" y="{y}" width="{width}" height="{height}"/>',
        f'<text class="{kind}" x="{left:g}" y="{top:g}">{label.strip()}</text>',
    ]


def _frame(x: int, y: int, width: int, height: int) -> str:
    return f'<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="12"/>'


def _text(x: float, y: float, text: str, kind: str, slot: str = "") -> list[str]:
    data = f' data-text="{slot}"' if slot else ""
    return [f'<text class="{kind}" x="{x:g}" y="{y:g}"{data}>{escape(text)}</text>']


def _line(path: str, kind: str = "wire", *, arrow: bool = False) -> str:
    end = ' marker-end="url(#arrow)"' if arrow else ""
    return f'<path class="{kind}" d="{path}"{end}/>'


def _stem(x: int, ends: Sequence[tuple[int, int]]) -> list[str]:
    """Upward arrows."""
    return [_line(f"M{x} {start}V{end}", arrow=True) for start, end in ends]


def _short(text: str, longest: int = 32) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
