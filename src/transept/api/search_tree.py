"""The tree of hypotheses of a beam search, with texts."""

from dataclasses import replace
from typing import NamedTuple

from transept.api.transducer import Transducer
from transept.api.words import filled, input_of, only_unit, text_of_ids
from transept.decoding.config import SearchConfig
from transept.decoding.record import Candidate, Fate, SearchRecord
from transept.errors import DataError
from transept.progress import Watch, no_progress
from transept.text.tokenizer import EOS_ID

MOST_HYPOTHESES = 5_000
"""The maximum number of hypotheses of a tree."""


class TreeHypothesis(NamedTuple):
    """A hypothesis that a beam search considered."""

    id: int
    parent: int | None
    """The hypothesis that it extends by a token. None: it has one token."""
    token: str
    """Its last subword, or the end symbol."""
    text: str
    score: float
    """log P."""
    normalized: float
    """log P divided by the length penalty, by which outputs are ranked."""
    state: Fate


class SearchTree(NamedTuple):
    """The best candidates of each step of a beam search, and its output."""

    steps: tuple[tuple[TreeHypothesis, ...], ...]
    winner: int
    """The id of the output."""
    reason: str
    """Why the output is better than the others."""


def search_tree(
    model: Transducer,
    text: str,
    config: SearchConfig,
    watch: Watch = no_progress,
    *,
    target_language: str | None = None,
) -> SearchTree:
    """Record the beam search of the native engine for one sentence.

    Args:
        model: The model.
        text: One sentence; it is not split.
        config: Beam size and length penalty.
        watch: Called after each step. It may raise an exception.
        target_language: The target language, for a model that has several.
    """
    if config.beam_size < 2:
        raise DataError("a tree requires a beam_size of at least 2; 1 is greedy search")
    unit = only_unit(model, text, target_language)
    config = replace(config, n_best=config.beam_size)
    one = input_of(model, unit, [], config)
    n_hypotheses = 2 * config.beam_size * one.max_length
    if n_hypotheses > MOST_HYPOTHESES:
        raise DataError(
            f"the search may consider {n_hypotheses:,} hypotheses, more than {MOST_HYPOTHESES:,}; "
            "choose a smaller beam_size or a shorter sentence"
        )
    record = SearchRecord()
    for n_steps, partial in enumerate(model.native.stream(one, config, record), start=1):
        watch(n_steps, None)
        outputs = partial.outputs
    first, *others = (record.find(output, EOS_ID) for output in outputs)

    def shown(candidate: Candidate) -> TreeHypothesis:
        number, parent, ids, log_p, score, fate = candidate
        (token,) = model.target_tokenizer.pieces_of(ids[-1:])
        written = filled(unit, text_of_ids(model, ids, unit))
        return TreeHypothesis(number, parent, token, written, log_p, score, fate)

    steps = tuple(tuple(map(shown, step)) for step in record.steps)
    return SearchTree(steps, first.number, _reason(first, others, record))


def _reason(first: Candidate, others: list[Candidate], record: SearchRecord) -> str:
    """Why a hypothesis is the output, with numbers."""
    numbers = f"log P {first.log_p:.2f} / length penalty {first.log_p / first.score:.2f}"
    if first.fate != "finished":
        return (
            f"No hypothesis ended within {len(record.steps)} tokens, so the likeliest one is the "
            f"output: {numbers} = {first.score:.2f}."
        )
    reason = f"The output has the highest score: {numbers} = {first.score:.2f}."
    if others:
        reason += f" The second best finished hypothesis has {others[0].score:.2f}."
    return f"{reason} No unfinished hypothesis could score more than {record.bound:.2f}."
