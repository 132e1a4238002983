"""`transept translate`: text in, text out, line for line."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from transept.errors import ConfigError

if TYPE_CHECKING:
    from transept.api import Translation

Flag = Annotated[bool, Parameter(negative="", show_default=False)]

LINES_AT_A_TIME = 512
"""Enough to put lines of similar length together; few enough to see results soon."""


def translate(
    *texts: str,
    model: Path | None = None,
    file: Annotated[Path | None, Parameter(name=["--input", "-i"])] = None,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    n_best: int = 1,
    scores: Flag = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Translate text: arguments, a file, or standard input.

    Each line is one sentence, and an empty line stays an empty line. With --n-best above 1, lines
    are in the form of Moses: number ||| translation ||| score.

    Args:
        texts: What to translate; without any, a file or standard input is read.
        model: The directory of a model or of a run.
        file: UTF-8 text, one sentence a line; .gz, .xz and .zst are read too.
        beam_size: Hypotheses kept alive; 1 is greedy search.
        length_penalty: The α of Wu et al.: higher prefers longer translations.
        n_best: How many translations to give of each sentence, at most the beam size.
        scores: Put each translation's score in front of it, and a tab.
        as_json: Print one JSON object a line.
    """
    from transept.api import load
    from transept.decoding.config import SearchConfig

    if model is None:
        raise ConfigError(
            "--model is missing, and no model is shipped yet: name the directory of one that "
            "`transept train` made"
        )
    if texts and file is not None:
        raise ConfigError("give either texts or --input, not both")
    SearchConfig(beam_size=beam_size, length_penalty=length_penalty, n_best=n_best)
    transducer = load(model)
    number = 0
    for lines in _in_turn(iter(texts) if texts else _read(file)):
        results = transducer.translate(
            lines, beam_size=beam_size, length_penalty=length_penalty, n_best=n_best
        )
        for result in results:
            _write(result, number, n_best, scores, as_json)
            number += 1
        sys.stdout.flush()


def _read(file: Path | None) -> Iterator[str]:
    from transept.text.files import STANDARD_INPUT, read_text

    return read_text(STANDARD_INPUT if file is None else file)


def _in_turn(lines: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(lines, LINES_AT_A_TIME)):
        yield some


def _write(result: "Translation", number: int, n_best: int, scores: bool, as_json: bool) -> None:
    if as_json:
        outputs = [{"text": one.text, "score": one.score} for one in result.outputs]
        line = {"source": result.source, "translation": result.text, "outputs": outputs}
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
        return
    for one in result.outputs:
        if n_best > 1:
            sys.stdout.write(f"{number} ||| {one.text} ||| {one.score:.6f}\n")
        else:
            sys.stdout.write(f"{one.score:.6f}\t{one.text}\n" if scores else f"{one.text}\n")
