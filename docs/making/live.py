"""Chapter 0: the recorded run, and the Transformer that runs in the reader's browser.

In the page, a comment `<!-- live: NAME -->` is the place of a panel. `docs/live/page.js` fills the
panels with a reader's own run. Without JavaScript, they show a recorded one.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from making.network_figures import figure_1, figure_2
from making.recorded import Run, picture, record
from transept import apps
from transept.shelf import find_model

DOCS = Path(__file__).resolve().parents[1]
CHAPTER = "00_one_sentence"
PLACE = re.compile(r"^<!-- live: ([\w-]+) -->$", re.MULTILINE)
MODEL = "en-de"
MODEL_FILES = ("config.toml", "tokenizer/tokenizer.model", "weights.safetensors")
EXAMPLES = (
    "The old man reads a book in the garden.",
    "I would like a cup of tea.",
    "The bank refused the loan.",
    "She gave her brother the letter that she had found.",
)
CAPTIONS = {
    "figure-1": "Figure 1 of the paper, with the shapes and numbers of this run. A picture has a "
    "row per subword and a column for each of the first 64 numbers of its vector: blue is "
    "positive, orange is negative. A box links the chapter that explains it.",
    "figure-2": "Figure 2 of the paper, with the numbers of one head and its layer. A row of the "
    "weights sums to 1.",
}


def write_live(folder: Path) -> None:
    """Copy the scripts, the drawings that the server's page also uses, and the bundled model."""
    shutil.copytree(DOCS / "live", folder)
    shutil.copytree(Path(apps.__path__[0]) / "explorer", folder / "explorer")
    (folder / MODEL).mkdir()
    for name in MODEL_FILES:
        shutil.copy(find_model(MODEL) / name, folder / MODEL)


def add_live(page: Path) -> None:
    """Replace the comments of chapter 0 with panels. Other chapters stay as they are."""
    if page.stem != CHAPTER:
        return
    filled = panels(record())
    text = page.read_text(encoding="utf-8")
    if {*PLACE.findall(text)} != {*filled}:
        raise ValueError(f"{page}: its panels are not {', '.join(filled)}")
    text = PLACE.sub(lambda found: f"```{{raw}} html\n{filled[found[1]]}\n```", text)
    page.write_text(text, encoding="utf-8")


def panels(run: Run) -> dict[str, str]:
    """The parts of the page that show a run, as HTML."""
    return {
        "form": _form(run),
        "subwords": _panel("subwords", _subwords(run)),
        "embedding": _panel("embedding", _embedding(run)),
        "figure-1": _figure("figure-1", figure_1(run, _chapters())),
        "figure-2": _figure("figure-2", figure_2(run)),
        "heads": _panel("heads", _heads(run)),
        "softmax": _panel("softmax", _softmax(run)),
        "beam": _panel("beam", _beam(run)),
    }


def _chapters() -> dict[str, str]:
    """The addresses of the chapters that Figure 1 links."""
    subjects = {
        "stacks": "encoder_and_decoder",
        "attention": "multi_head_attention",
        "words": "feed_forward_and_embeddings",
    }
    scripts = {path.stem[3:]: path.stem for path in (DOCS / "walkthrough").glob("*.py")}
    return {name: f"{scripts[subject]}.html" for name, subject in subjects.items()}


def _form(run: Run) -> str:
    size = sum((find_model(MODEL) / name).stat().st_size for name in MODEL_FILES)
    styles = "".join(
        f'<link rel="stylesheet" href="../_static/live/{name}.css">'
        for name in ("explorer/explorer", "explorer/beam", "live")
    )
    examples = "".join(f'<button type="button">{escape(text)}</button>' for text in EXAMPLES)
    return f"""{styles}
<div id="live" class="live-form">
<form hidden>
<label for="live-source">An English sentence</label>
<div class="live-row">
<input id="live-source" lang="en" maxlength="300" autocomplete="off" required
 value="{escape(run.source)}">
<button type="submit" class="live-go">Translate</button>
</div>
<div class="live-examples" role="group" aria-label="Examples">{examples}</div>
<p class="live-note">The first translation downloads the model, {size / 1e6:.1f} MB, from this site.
It then runs in this page: no text is sent anywhere.</p>
</form>
<p class="live-recorded">Recorded run of <q>{escape(run.source)}</q></p>
<p class="live-output" lang="de">{escape(run.output)}</p>
<p class="live-status" role="status"></p>
<noscript>
<p class="live-note">With JavaScript, this page translates your own sentences.</p>
</noscript>
</div>
<script type="module" src="../_static/live/page.js"></script>"""


def _panel(name: str, content: str) -> str:
    return f'<div class="live-panel" data-live="{name}">\n{content}\n</div>'


def _figure(name: str, drawing: str) -> str:
    caption = f"<figcaption>{escape(CAPTIONS[name])}</figcaption>"
    return (
        f'<div class="live-choices" data-live="{name}-choices"></div>\n'
        f'<figure class="plot live-figure" data-live="{name}" tabindex="0">\n'
        f"{drawing}\n{caption}</figure>"
    )


def _table(kind: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. The first cell of a row is its head."""
    head = "".join(f'<th scope="col">{name}</th>' if name else "<td></td>" for name in heads)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    )
    table = f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<div class="live-scroll" tabindex="0"><table class="{kind}">{table}</table></div>'


def _visible(piece: str) -> str:
    return escape(piece.replace("▁", "·"))


def _subwords(run: Run) -> str:
    sides = (("Source", run.pieces, run.source_ids), ("Output", run.target_pieces, run.target_ids))
    return "".join(_chips(*side) for side in sides)


def _chips(name: str, pieces: list[str], ids: list[int]) -> str:
    chips = "".join(
        f"<li><b>{_visible(piece)}</b> <small>{number}</small></li>"
        for piece, number in zip(pieces, ids, strict=True)
    )
    return f'<p class="live-name">{name}, {len(ids)} subwords</p><ol class="chips">{chips}</ol>'


def _embedding(run: Run) -> str:
    def strip(part: int, row: int) -> str:
        vector = run.embedding[part][row : row + 1]
        return f'<img class="strip" alt="" src="{picture(vector, 2.5)}">'

    rows = (
        [_visible(one), *(strip(n, row) for n in range(3))] for row, one in enumerate(run.pieces)
    )
    return _table("strips", ("Subword", "embedding", "+ position", "= input"), rows)


def _heads(run: Run) -> str:
    rows = []
    for layer, heads in enumerate(run.encoder_weights, 1):
        pictures = [
            f'<img class="weights" alt="layer {layer}, head {n}" src="{picture(each, 1.0)}">'
            for n, each in enumerate(heads, 1)
        ]
        rows.append([f"layer {layer}", *pictures])
    names = [f"head {n + 1}" for n in range(run.encoder_weights.shape[1])]
    return _table("all-heads", ["", *names], rows)


def _with_number(piece: str, value: str) -> str:
    return f"{_visible(piece)} <small>{value}</small>"


def _softmax(run: Run) -> str:
    rows = []
    for n, p in enumerate(run.probabilities):
        top = zip(*(part.tolist() for part in p.topk(3)), strict=True)
        likely = [_with_number(run.vocabulary[token], f"{value:.3f}") for value, token in top]
        before = _visible(run.target_pieces[n - 1]) if n else "(start)"
        rows.append([str(n + 1), before, *likely])
    return _table("steps", ("Step", "Last subword", "Likeliest next", "Second", "Third"), rows)


def _beam(run: Run) -> str:
    rows = []
    for n, step in enumerate(run.tree.steps, 1):
        cells = [
            ", ".join(
                _with_number(one.token, f"{one.score:.2f}") for one in step if one.state == state
            )
            for state in ("kept", "finished")
        ]
        rows.append([str(n), *cells])
    table = _table("steps", ("Step", "Kept, with log P", "Finished, with log P"), rows)
    return f"<p>{escape(run.tree.reason)}</p>{table}"
