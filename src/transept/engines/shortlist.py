"""Vocabulary shortlists: the target tokens that are plausible for a source.

The projection to the vocabulary is the largest matrix of a step. A shortlist contains, for each
source token, the target tokens that co-occurred with it in a corpus. A batch then needs only the
rows of these tokens. All other tokens have probability zero, so outputs may change. Therefore
shortlists are off by default.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from transept.errors import DataError
from transept.progress import Tally, Watch
from transept.runtime.storage import write_file
from transept.shapes import Int, Tensor
from transept.text.tokenizer import EOS_ID

CHUNK = 2**22
"""Token pairs counted at a time."""

SIDES = ("source", "target")
Vocabularies = tuple[str, str]
"""The sha256 of the source vocabulary and of the target vocabulary."""
Ids = Sequence[int] | NDArray[np.integer]
Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Sorted unique numbers, and how often each occurred."""


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The target tokens that are allowed for each source token."""

    likely: Int[Tensor, "Vs K"]
    """The likeliest target tokens of each source token, padded with tokens of `always`."""
    always: Int[Tensor, "_"]
    """The most frequent target tokens, allowed for any source."""

    def tokens(
        self, source_ids: Int[Tensor, "*shape"], given: Int[Tensor, "_"] | None = None
    ) -> Int[Tensor, " listed"]:
        """All tokens allowed for these sources, and the given tokens, sorted."""
        likely = self.likely[source_ids.flatten().unique()].flatten()
        parts = [likely, self.always] if given is None else [likely, self.always, given]
        tokens: Tensor = torch.cat(parts).unique()
        return tokens

    def save(self, file: Path, vocabularies: Vocabularies) -> None:
        """Write a safetensors file atomically."""
        tensors = {"likely": self.likely.int(), "always": self.always.int()}
        write_file(file, save(tensors, dict(zip(SIDES, vocabularies, strict=True))))

    @classmethod
    def load(cls, file: Path, vocabularies: Vocabularies) -> "Shortlist":
        """Read a file. Raise DataError if it was made for other vocabularies."""
        try:
            with safe_open(file, "pt") as stored:
                made_for = stored.metadata() or {}
                likely, always = stored.get_tensor("likely"), stored.get_tensor("always")
        except (OSError, SafetensorError) as error:
            raise DataError(
                f"{file} is not a shortlist ({error}): make one from the model's corpus"
            ) from error
        wrong = [
            side
            for side, vocabulary in zip(SIDES, vocabularies, strict=True)
            if made_for.get(side) != vocabulary
        ]
        if wrong:
            raise DataError(
                f"{file} was not made for the model's {' and '.join(wrong)} vocabulary: make a "
                "shortlist from a corpus with the model's vocabularies"
            )
        return cls(likely.long(), always.long())


def learn_shortlist(directory: Path, file: Path, watch: Watch) -> None:
    """Learn a shortlist from a prepared corpus, and write it to a file.

    Args:
        directory: The corpus.
        file: The file to write.
        watch: Called with the number of pairs read and the total.
    """
    from transept.data.shards import Corpus  # not needed for translation

    corpus = Corpus.open(directory)
    tally = Tally(watch, len(corpus))

    def pair(index: int) -> tuple[list[int], list[int]]:
        tally.add(1)
        return corpus.source(index).tolist(), corpus.target(index).tolist()

    n_source = corpus.manifest.side("source").vocab_size
    found = learn(map(pair, range(len(corpus))), n_source, keep=[EOS_ID])
    try:
        settings = corpus.manifest.settings
        found.save(file, (settings.source_tokenizer, settings.target_tokenizer))
    except OSError as error:
        raise DataError(
            f"{file}: cannot be written ({error.strerror}); choose another path"
        ) from error


def learn(
    pairs: Iterable[tuple[Ids, Ids]],
    n_source: int,
    *,
    n_likely: int = 32,
    n_always: int = 256,
    keep: Sequence[int] = (),
) -> Shortlist:
    """Learn a shortlist from sentence pairs, by how often tokens occur in the same pair.

    Two tokens are associated by Dice's coefficient: 2 n(s, t) / (n(s) + n(t)), where n is the
    number of pairs. So a frequent word is not considered a translation of every word.

    Args:
        pairs: Ids of source and target.
        n_source: Size of the source vocabulary.
        n_likely: Target tokens kept per source token.
        n_always: The most frequent target tokens, kept for any source.
        keep: Tokens that are always allowed, such as the end symbol.
    """
    together, in_source, in_target = _count(pairs)
    source, target = np.divmod(together[0], 2**32)
    dice = 2 * together[1] / (_of(in_source, source) + _of(in_target, target))
    order = np.lexsort((-dice, source))
    source, target = source[order], target[order]
    first = np.searchsorted(source, np.arange(n_source))
    rank = np.arange(len(source)) - first[source]
    frequent = in_target[0][np.argsort(-in_target[1], kind="stable")[:n_always]]
    always = np.unique(np.concatenate([frequent, np.array(keep, np.int64)]))
    if len(always) == 0:
        raise DataError("a shortlist cannot be learned without sentence pairs")
    likely = np.full((n_source, n_likely), always[0])
    kept = rank < n_likely
    likely[source[kept], rank[kept]] = target[kept]
    return Shortlist(torch.from_numpy(likely), torch.from_numpy(always))


def _count(pairs: Iterable[tuple[Ids, Ids]]) -> tuple[Counts, Counts, Counts]:
    """The number of pairs in which two tokens co-occur, and in which each token occurs."""
    nothing = np.empty(0, np.int64), np.empty(0, np.int64)
    counts: list[Counts] = [nothing, nothing, nothing]
    waiting: list[list[NDArray[np.int64]]] = [[], [], []]
    size = 0
    for one, other in pairs:
        source, target = np.unique(one).astype(np.int64), np.unique(other).astype(np.int64)
        waiting[0].append((source[:, None] * 2**32 + target).ravel())
        waiting[1].append(source)
        waiting[2].append(target)
        size += len(source) * len(target)
        if size > CHUNK:
            counts = [_added(count, new) for count, new in zip(counts, waiting, strict=True)]
            waiting, size = [[], [], []], 0
    together, in_source, in_target = map(_added, counts, waiting)
    return together, in_source, in_target


def _added(counts: Counts, new: list[NDArray[np.int64]]) -> Counts:
    """The counts with these numbers added."""
    nothing = counts[0][:0]  # numpy cannot concatenate an empty list
    numbers, n = np.unique(np.concatenate([nothing, *new]), return_counts=True)
    numbers, n = np.concatenate([counts[0], numbers]), np.concatenate([counts[1], n])
    each, index = np.unique(numbers, return_inverse=True)
    return each, np.bincount(index, n, len(each)).astype(np.int64)


def _of(counts: Counts, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each of these numbers occurred."""
    found: NDArray[np.int64] = counts[1][np.searchsorted(counts[0], numbers)]
    return found
