"""The file of the demo's sentences: per line a split, an English and a German sentence."""

import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from grammar.examples import EXAMPLES
from grammar.grammar import Splits

FILE: Final = Path(__file__).parents[1] / "src/transept/apps/recipes/sentences.tsv.xz"
"""The file in the package."""


def lines(splits: Splits) -> Iterator[str]:
    """The lines of the file: train, dev, test, and the examples; fields are separated by tabs."""
    for name, pairs in splits._asdict().items():
        for source, target, _ in pairs:
            yield f"{name}\t{source}\t{target}\n"
    for source, target in EXAMPLES:
        yield f"examples\t{source}\t{target}\n"


def write(splits: Splits, path: Path) -> None:
    """Write the file, compressed with xz."""
    text = "".join(lines(splits)).encode()
    path.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
