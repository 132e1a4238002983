import numpy as np
import torch
from tests.memory_corpus import MemoryCorpus

from transept.data.batching.feed import Feed, Header
from transept.data.batching.layouts import Shape
from transept.data.batching.mixture import Mixture
from transept.data.config import BatchConfig
from transept.model.packing import Tokens
from transept.shapes import Tensor
from transept.training.batches import Loader

SOURCES = [[5, 6, 1], [7, 1], [8, 9, 10, 11, 12, 13, 1], [14, 15, 1]]
TARGETS = [[21, 1], [22, 23, 1], [24, 25, 26, 27, 28, 1], [29, 30, 31, 1]]


def batch(**changes: object) -> tuple[Header, Tensor]:
    settings = {"source_tokens": 24, "target_tokens": 24, "tile": 6, "max_length": 12} | changes
    config = BatchConfig(**settings)  # type: ignore[arg-type]
    feed = Feed(mixture=Mixture([MemoryCorpus(SOURCES, TARGETS)]), config=config, seed=1)
    with Loader(feed) as loader:
        return next(loader)


def only(**changes: object) -> tuple[Shape, Tensor, Tensor]:
    """The micro-batch of a batch that has one."""
    header, block = batch(**changes)
    (micro,) = header.cut(block)
    return micro


def sentences(side: Tensor) -> list[list[int]]:
    """What stands in the places of each segment, in the order of its positions."""
    ids, segments, positions = side
    found = []
    for segment in range(1, int(segments.max()) + 1):
        here = segments == segment
        order = positions[here].argsort()
        assert positions[here][order].tolist() == list(range(int(here.sum())))
        found.append(ids[here][order].tolist())
    return found


def pairs(source: Tensor, target: Tensor) -> list[tuple[list[int], list[int]]]:
    return list(zip(sentences(source), sentences(target), strict=True))


def test_tiles_hold_the_pairs_and_padding_is_zero() -> None:
    _, source, target = only()
    assert source.shape == target.shape == (3, 4, 6)
    assert sorted(pairs(source, target)) == sorted(zip(SOURCES, TARGETS, strict=True))
    for ids, segments, positions in (source, target):
        padding = segments == 0
        assert not ids[padding].any()
        assert not positions[padding].any()


def test_the_figures_are_those_of_the_sentences() -> None:
    header, _ = batch()
    assert (header.n_pairs, header.n_source_tokens, header.n_target_tokens) == (4, 15, 15)
    (shape,) = header.shapes
    assert shape == Shape(n_pairs=4, n_rows=4, source_width=6, target_width=6, row_tiles=2)


def test_seen_as_wider_rows_each_pair_stands_in_one() -> None:
    _, source, target = only()
    for _, segments, _ in (source, target):
        first, second = segments.view(2, 12).tolist()
        assert not (set(first) & set(second)) - {0}


def test_by_length_is_one_pair_to_a_row() -> None:
    _, source, target = only(layout="by_length", source_tokens=100, target_tokens=100)
    assert source.shape == (3, 4, 7)
    assert target.shape == (3, 4, 6)
    _, segments, _ = source
    assert segments[:, 0].tolist() == [1, 2, 3, 4]
    assert sorted(pairs(source, target)) == sorted(zip(SOURCES, TARGETS, strict=True))


def test_the_network_reads_the_sentences_that_were_laid_out() -> None:
    """The data do not know the network; this is how the two meet."""
    shape, _, side = only()
    tokens = Tokens.tiled(*side, row_tiles=shape.row_tiles).without_padding()
    layout = tokens.layout
    assert len(tokens.ids) == 15
    assert torch.equal(layout.to_flat(layout.to_rows(tokens.ids)), tokens.ids)
    shifted = layout.to_rows(tokens.shifted_right(0).ids)
    for segment, sentence in enumerate(sentences(side), start=1):
        assert shifted[layout.segments == segment].tolist() == [0, *sentence[:-1]]


def test_a_batch_is_one_piece_of_memory() -> None:
    header, block = batch(micro_batches=2, source_tokens=48, target_tokens=48)
    start, size = block.data_ptr(), block.nbytes
    parts: list[Tensor] = [side for _, *sides in header.cut(block) for side in sides]
    assert len(parts) == 4
    assert all(start <= part.data_ptr() < start + size for part in parts)
    assert sum(part.nbytes for part in parts) == size


def test_micro_batches_without_pairs_are_empty_and_not_missing() -> None:
    header, _ = batch(micro_batches=8, source_tokens=96, target_tokens=96)
    assert len(header.shapes) == 8
    assert sum(shape.n_pairs for shape in header.shapes) == 4
    assert min(shape.n_pairs for shape in header.shapes) == 0


def test_several_corpora_are_numbered_through() -> None:
    mixture = Mixture(
        [MemoryCorpus(SOURCES[:1], TARGETS[:1]), MemoryCorpus(SOURCES[1:], TARGETS[1:])]
    )
    assert mixture.read("target", np.array([3, 0, 1])).tolist() == [29, 30, 31, 1, 21, 1, 22, 23, 1]
