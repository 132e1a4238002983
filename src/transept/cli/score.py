"""`transept score`: how probable a model finds given translations."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from transept.cli.app import Flag, write_line
from transept.cli.models import ANY_MODEL, MODEL_OPTIONS, Models
from transept.cli.progress import ProgressBar
from transept.errors import DataError
from transept.runtime.interrupt import import_torch
from transept.text.files import describe

if TYPE_CHECKING:
    from transept.api.texts import PairScore

PAIRS_AT_A_TIME = 1024


def score(
    *,
    source: Path,
    target: Path,
    per_token: Flag = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
    models: Annotated[Models, MODEL_OPTIONS] = ANY_MODEL,
) -> None:
    """Print how probable a model finds given translations.

    The translations are given to the decoder, which searches for none (forced decoding). Each pair
    gets a line: log P(target | source), the natural logarithm, not divided by a length penalty;
    a tab; and the number of target tokens, with the end symbol. For the perplexity of a whole
    corpus see `transept evaluate --perplexity`.

    Args:
        source: UTF-8 text, one sentence a line; .gz, .xz and .zst are read too; - is standard
            input.
        target: Its translations, line by line.
        per_token: Add a tab, and each token with its own log-probability: `▁Guten=-0.12`.
        as_json: Print one JSON object a line, with everything that is known.
        models: Which model to use.
    """
    from transept.api.texts import TooLongError
    from transept.evaluation.reading import read_aligned

    sources, targets = read_aligned([source, target])
    import_torch()
    transducer = models.load()
    with ProgressBar("pairs", len(sources), results_to_stdout=True) as bar:
        for start in range(0, len(sources), PAIRS_AT_A_TIME):
            some = slice(start, start + PAIRS_AT_A_TIME)
            try:
                watch = partial(bar.share, len(sources[some]))
                scores = transducer.score(sources[some], targets[some], watch)
            except TooLongError as error:
                place = f"{describe(source)} and {describe(target)}, line {start + error.number}"
                raise DataError(f"{place}: {error.what}; leave that line out of both") from error
            for pair in scores:
                write_line(_json(pair) if as_json else _line(pair, per_token))
            sys.stdout.buffer.flush()
            bar.advance(len(scores))


def _line(pair: "PairScore", per_token: bool) -> str:
    columns = [f"{pair.log_probability:.6f}", str(len(pair.tokens))]
    if per_token:
        each = zip(pair.tokens, pair.token_log_probabilities, strict=True)
        columns.append(" ".join(f"{token}={log_p:.6f}" for token, log_p in each))
    return "\t".join(columns)


def _json(pair: "PairScore") -> str:
    described = {
        "source": pair.source,
        "target": pair.target,
        "log_probability": pair.log_probability,
        "tokens": pair.tokens,
        "token_log_probabilities": pair.token_log_probabilities,
    }
    return json.dumps(described, ensure_ascii=False)
