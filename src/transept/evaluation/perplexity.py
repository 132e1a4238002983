"""Perplexity of given translations under a model: exp of the mean −log p, never smoothed.

Each sentence ends in a symbol that the model must predict too. It counts as a token and, per word,
as a word; so a corpus has as many of both more than its text as it has sentences. Words stand
between white space. Values per token can be compared only between models with one vocabulary;
values per word can always be, on one text.
"""

import math

from transept.evaluation.scores import Convention, Perplexity
from transept.version import __version__


def perplexities(
    log_probability: float, *, tokens: int, words: int, sentences: int, vocabulary: str
) -> tuple[Perplexity, Perplexity]:
    """Per token, and per word.

    Args:
        log_probability: Natural, of all sentences together.
        tokens: Of all sentences, end symbols included.
        words: Of all sentences, end symbols not included.
        sentences: How many end symbols there are.
        vocabulary: What the tokens are of, for the signature.
    """
    return (
        _perplexity("token", f"tok:{vocabulary}", log_probability, tokens),
        _perplexity("word", "tok:white-space", log_probability, words + sentences),
    )


def _perplexity(unit: str, tokens: str, log_probability: float, units: int) -> Perplexity:
    signature = f"per:{unit}|{tokens}|eos:yes|smooth:none|version:transept-{__version__}"
    return Perplexity(
        convention=Convention(name=f"perplexity per {unit}", signature=signature),
        value=math.exp(min(-log_probability / max(1, units), 700.0)),
        units=units,
    )
