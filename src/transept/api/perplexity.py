"""The perplexity of given translations."""

from collections.abc import Sequence

from transept.api.transducer import Transducer
from transept.evaluation.scores import Perplexity, perplexities
from transept.progress import Watch, no_progress


def measure_perplexities(
    transducer: Transducer,
    sources: Sequence[str],
    references: Sequence[str],
    watch: Watch = no_progress,
) -> tuple[Perplexity, Perplexity]:
    """The perplexity per token and per word, without label smoothing.

    The tokens are those of the canonical segmentation, as in training and in other programs.
    """
    scored = transducer.score(sources, references, watch, segmentation="canonical")
    # A pair of empty lines has no tokens, not even an end symbol.
    pairs = [pair for pair in scored if pair.tokens]
    vocabulary = transducer.target_tokenizer
    return perplexities(
        sum(pair.log_probability for pair in pairs),
        tokens=sum(len(pair.tokens) for pair in pairs),
        words=sum(len(pair.target.split()) for pair in pairs),
        sentences=len(pairs),
        vocabulary=f"{vocabulary.kind}-{vocabulary.vocab_size}-{vocabulary.sha256[:8]}",
    )
