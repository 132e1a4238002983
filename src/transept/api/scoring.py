"""Score given translations by forced decoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from transept.api.config import Segmentation
from transept.api.networks import Networks
from transept.api.segmentation import likeliest_segmentations
from transept.api.texts import LengthLimits
from transept.decoding.engine import Ids, StepEngine
from transept.errors import ConfigError, DataError, Problem
from transept.progress import Watch, no_progress
from transept.text.tokenizer import EOS_ID, Tokenizer

Pairs = Sequence[tuple[Ids, Ids]]
"""The ids of each source and of its target, end symbols included."""


@dataclass(frozen=True, slots=True)
class PairScore:
    """The probability that a model assigns to a given translation."""

    source: str
    target: str
    log_probability: float
    """log P(Y|X), natural logarithm, including the end symbol. See `Transducer.score`."""
    tokens: tuple[str, ...]
    """The subwords of the scored segmentation of the target, and the end symbol."""
    token_log_probabilities: tuple[float, ...]
    """The log-probability of each token, given the source and the previous tokens."""


class Scorer:
    """Scores pairs of texts."""

    def __init__(
        self,
        networks: Networks,
        engine: StepEngine,
        vocabularies: tuple[Tokenizer, Tokenizer],
        limits: LengthLimits,
    ) -> None:
        self._networks, self._engine, self._limits = networks, engine, limits
        self._source, self._target = vocabularies

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        watch: Watch,
        language: str | None,
        segmentation: Segmentation,
    ) -> list[PairScore]:
        """The scores of pairs: see `Transducer.score`."""
        if segmentation not in get_args(Segmentation):
            what = f"{segmentation!r} is not one of 'likeliest', 'canonical'"
            raise ConfigError([Problem("segmentation", what)])
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} sources and {len(targets)} targets: the numbers must be equal"
            )
        pairs, todo = self._encoded(sources, targets, language)
        self._limits.check_pairs(max(map(len, pair)) for pair in pairs)
        empty = len(pairs) - len(todo)
        some = [pairs[index] for index in todo]
        found = self._scored(some, segmentation, lambda done, _: watch(done + empty, len(pairs)))
        scored = dict(zip(todo, found, strict=True))
        return [
            PairScore(
                source,
                target,
                sum(values, 0.0),
                tuple(self._target.pieces_of(ids)),
                tuple(values),
            )
            for index, (source, target) in enumerate(zip(sources, targets, strict=True))
            for ids, values in [scored.get(index, ((), []))]
        ]

    def _encoded(
        self, sources: Sequence[str], targets: Sequence[str], language: str | None
    ) -> tuple[Pairs, list[int]]:
        """The ids of all pairs, and the indices of those that are not empty on both sides."""
        tagged = [self._source.target_tag(text.strip(), language) for text in sources]
        encoded = [
            self._source.encode_batch([text for _, text in tagged]),
            self._target.encode_batch([text.strip() for text in targets]),
        ]
        pairs = [
            (self._source.framed([*tag, *source]), [*target, EOS_ID])
            for (tag, _), source, target in zip(tagged, *encoded, strict=True)
        ]
        todo = [index for index, pair in enumerate(zip(*encoded, strict=True)) if any(pair)]
        return pairs, todo

    def _scored(
        self, pairs: Pairs, segmentation: Segmentation, watch: Watch
    ) -> list[tuple[Ids, list[float]]]:
        """The target ids of each pair, and their log-probabilities."""
        is_canonical = segmentation == "canonical"
        log_p = self._networks.log_probabilities(pairs, watch if is_canonical else no_progress)
        scored = [(ids, values) for (_, ids), values in zip(pairs, log_p, strict=True)]
        if is_canonical:
            return scored
        found = likeliest_segmentations(self._engine, self._target, pairs, self._limits, watch)
        others = [index for index, ids in enumerate(found) if ids != pairs[index][1]]
        log_p = self._networks.log_probabilities([(pairs[i][0], found[i]) for i in others])
        for index, values in zip(others, log_p, strict=True):
            if sum(values) > sum(scored[index][1]):
                scored[index] = found[index], values
        return scored
