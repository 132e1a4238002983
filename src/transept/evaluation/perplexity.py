"""Perplexity of given translations under a model: exp of the mean −log p, never smoothed.

Each sentence ends in a symbol that the model must predict too. This counts as a token and, in the
perplexity per word, as a word: each sentence adds one to both. Words are what stands between white
space. Values per token can be compared only between models with the same vocabulary; values per
word can be compared between any models, on the same text.
"""

import math

from transept.evaluation.scores import Convention, Perplexity
from transept.version import __version__


def perplexities(
    log_probability: float, *, tokens: int, words: int, sentences: int, vocabulary: str
) -> tuple[Perplexity, Perplexity]:
    """Per token, and per word.

    Args:
        log_probability: The natural logarithm, of all sentences together.
        tokens: Of all sentences, end symbols included.
        words: Of all sentences, end symbols not included.
        sentences: How many end symbols there are.
        vocabulary: The vocabulary of the tokens, for the signature.
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
