"""`transept shortlist`: which target tokens each source token can lead to."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.progress import ProgressBar
from transept.errors import DataError
from transept.runtime.interrupt import import_torch


def shortlist(
    *,
    data: Path,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    likely: int = 32,
    always: int = 256,
) -> None:
    """Learn which target tokens each source token can lead to.

    The largest matrix in a step of a translation gives each token of the vocabulary its
    probability. With `transept translate --shortlist FILE`, only some of its rows are computed:
    those of tokens that a batch's source tokens can lead to, and those of the most frequent
    tokens.

    Args:
        data: A prepared corpus (`transept data prepare`), such as the one the model was trained on.
        output: The file to write.
        likely: How many target tokens to keep for each source token: those that most often go with
            it.
        always: How many of the most frequent target tokens to keep for any source.
    """
    import_torch()
    from transept.data.shards import Corpus
    from transept.engines.shortlist import learn
    from transept.text.tokenizer import EOS_ID

    corpus = Corpus.open(data)
    n_source, n_target = (corpus.manifest.side(side).vocab_size for side in ("source", "target"))
    with ProgressBar("pairs", len(corpus), results_to_stdout=False) as progress:

        def pair(index: int) -> tuple[list[int], list[int]]:
            progress.advance(1)
            return corpus.source(index).tolist(), corpus.target(index).tolist()

        pairs = map(pair, range(len(corpus)))
        found = learn(pairs, n_source, n_likely=likely, n_always=always, keep=[EOS_ID])
    try:
        settings = corpus.manifest.settings
        found.save(output, (settings.source_tokenizer, settings.target_tokenizer))
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error.strerror}); choose another path"
        ) from error
    sys.stdout.write(
        f"{output}: of {n_target:,} target tokens, {likely} for each of {n_source:,} source "
        f"tokens, and {len(found.always):,} for all\n"
    )
