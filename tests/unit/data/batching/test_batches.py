import numpy as np
import torch

from transept.data.batching.batches import LoadedBatch, LoadedMicroBatch, Side
from transept.data.batching.feed import Feed
from transept.data.batching.loader import Loader
from transept.data.batching.memory import MemoryCorpus
from transept.data.batching.mixture import Mixture
from transept.data.config import BatchConfig
from transept.model.packing import Tokens
from transept.shapes import Tensor

SOURCES = [[5, 6, 1], [7, 1], [8, 9, 10, 11, 12, 13, 1], [14, 15, 1]]
TARGETS = [[21, 1], [22, 23, 1], [24, 25, 26, 27, 28, 1], [29, 30, 31, 1]]


def batch(**changes: object) -> LoadedBatch:
    settings = {"source_tokens": 24, "target_tokens": 24, "tile": 6, "max_length": 12} | changes
    config = BatchConfig(**settings)  # type: ignore[arg-type]
    feed = Feed(mixture=Mixture([MemoryCorpus(SOURCES, TARGETS)]), config=config, seed=1)
    with Loader(feed) as loader:
        return next(loader)


def sentences(side: Side) -> list[list[int]]:
    """What stands in the places of each segment, in the order of its positions."""
    found = []
    for segment in range(1, int(side.segments.max()) + 1):
        here = side.segments == segment
        order = side.positions[here].argsort()
        assert side.positions[here][order].tolist() == list(range(int(here.sum())))
        found.append(side.ids[here][order].tolist())
    return found


def pairs(micro: LoadedMicroBatch) -> list[tuple[list[int], list[int]]]:
    return list(zip(sentences(micro.source), sentences(micro.target), strict=True))


def test_tiles_hold_the_pairs_and_padding_is_zero() -> None:
    (micro,) = batch().micro_batches
    assert micro.source.ids.shape == micro.target.ids.shape == (4, 6)
    assert sorted(pairs(micro)) == sorted(zip(SOURCES, TARGETS, strict=True))
    for side in (micro.source, micro.target):
        padding = side.segments == 0
        assert not side.ids[padding].any()
        assert not side.positions[padding].any()


def test_the_figures_are_those_of_the_sentences() -> None:
    whole = batch()
    (micro,) = whole.micro_batches
    assert (micro.n_pairs, micro.n_source_tokens, micro.n_target_tokens) == (4, 15, 15)
    assert micro.max_length == 7
    assert micro.row_tiles == 2
    assert (whole.header.n_pairs, whole.header.n_target_tokens) == (4, 15)


def test_seen_as_wider_rows_each_pair_stands_in_one() -> None:
    (micro,) = batch().micro_batches
    for side in (micro.source, micro.target):
        first, second = side.segments.view(2, 12).tolist()
        assert not (set(first) & set(second)) - {0}


def test_by_length_is_one_pair_to_a_row() -> None:
    (micro,) = batch(layout="by_length", source_tokens=100, target_tokens=100).micro_batches
    assert micro.source.ids.shape == (4, 7)
    assert micro.target.ids.shape == (4, 6)
    assert micro.source.segments[:, 0].tolist() == [1, 2, 3, 4]
    assert sorted(pairs(micro)) == sorted(zip(SOURCES, TARGETS, strict=True))


def test_the_network_reads_the_sentences_that_were_laid_out() -> None:
    """The data do not know the network; this is how the two meet."""
    (micro,) = batch().micro_batches
    side = micro.target
    tiled = Tokens.tiled(side.ids, side.segments, side.positions, row_tiles=micro.row_tiles)
    tokens = tiled.without_padding()
    layout = tokens.layout
    assert len(tokens.ids) == 15
    assert torch.equal(layout.together(layout.apart(tokens.ids)), tokens.ids)
    shifted = layout.apart(tokens.shifted_right(0).ids)
    for segment, sentence in enumerate(sentences(side), start=1):
        assert shifted[layout.segments == segment].tolist() == [0, *sentence[:-1]]


def test_a_batch_is_one_piece_of_memory() -> None:
    whole = batch(micro_batches=2, source_tokens=48, target_tokens=48)
    start, size = whole.block.data_ptr(), whole.block.nbytes
    parts: list[Tensor] = [
        field
        for micro in whole.micro_batches
        for side in (micro.source, micro.target)
        for field in (side.ids, side.segments, side.positions)
    ]
    assert all(start <= part.data_ptr() < start + size for part in parts)
    assert sum(part.nbytes for part in parts) == size


def test_micro_batches_without_pairs_are_empty_and_not_missing() -> None:
    whole = batch(micro_batches=8, source_tokens=96, target_tokens=96)
    assert len(whole.micro_batches) == 8
    assert sum(micro.n_pairs for micro in whole.micro_batches) == 4
    assert min(micro.n_pairs for micro in whole.micro_batches) == 0


def test_moving_keeps_everything() -> None:
    whole = batch()
    moved = whole.to("cpu")
    assert moved.header == whole.header
    assert torch.equal(moved.micro_batches[0].source.ids, whole.micro_batches[0].source.ids)


def test_several_corpora_are_numbered_through() -> None:
    mixture = Mixture(
        [MemoryCorpus(SOURCES[:1], TARGETS[:1]), MemoryCorpus(SOURCES[1:], TARGETS[1:])]
    )
    assert mixture.read("target", np.array([3, 0, 1])).tolist() == [29, 30, 31, 1, 21, 1, 22, 23, 1]
