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
    """The ids of each segment, ordered by position."""
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


def test_tiles_contain_the_pairs_and_zero_padding() -> None:
    _, source, target = only()
    assert source.shape == target.shape == (3, 4, 6)
    assert sorted(pairs(source, target)) == sorted(zip(SOURCES, TARGETS, strict=True))
    for ids, segments, positions in (source, target):
        padding = segments == 0
        assert not ids[padding].any()
        assert not positions[padding].any()


def test_header_counts_match_the_sentences() -> None:
    header, _ = batch()
    assert (header.n_pairs, header.n_source_tokens, header.n_target_tokens) == (4, 15, 15)
    (shape,) = header.shapes
    assert shape == Shape(n_pairs=4, n_rows=4, source_width=6, target_width=6, row_tiles=2)


def test_no_pair_crosses_a_row_of_tiles() -> None:
    _, source, target = only()
    for _, segments, _ in (source, target):
        first, second = segments.view(2, 12).tolist()
        assert not (set(first) & set(second)) - {0}


def test_by_length_puts_one_pair_in_each_row() -> None:
    _, source, target = only(layout="by_length", source_tokens=100, target_tokens=100)
    assert source.shape == (3, 4, 7)
    assert target.shape == (3, 4, 6)
    _, segments, _ = source
    assert segments[:, 0].tolist() == [1, 2, 3, 4]
    assert sorted(pairs(source, target)) == sorted(zip(SOURCES, TARGETS, strict=True))


def test_model_tokens_equal_the_collated_sentences() -> None:
    """The data code does not depend on the model; this test connects the two."""
    shape, _, side = only()
    tokens = Tokens.tiled(*side, row_tiles=shape.row_tiles).without_padding()
    layout = tokens.layout
    assert len(tokens.ids) == 15
    assert torch.equal(layout.to_flat(layout.to_rows(tokens.ids)), tokens.ids)
    shifted = layout.to_rows(tokens.shifted_right(0).ids)
    for segment, sentence in enumerate(sentences(side), start=1):
        assert shifted[layout.segments == segment].tolist() == [0, *sentence[:-1]]


def test_batch_is_one_contiguous_block() -> None:
    header, block = batch(micro_batches=2, source_tokens=48, target_tokens=48)
    start, size = block.data_ptr(), block.nbytes
    parts: list[Tensor] = [side for _, *sides in header.cut(block) for side in sides]
    assert len(parts) == 4
    assert all(start <= part.data_ptr() < start + size for part in parts)
    assert sum(part.nbytes for part in parts) == size


def test_micro_batches_without_pairs_are_empty() -> None:
    header, _ = batch(micro_batches=8, source_tokens=96, target_tokens=96)
    assert len(header.shapes) == 8
    assert sum(shape.n_pairs for shape in header.shapes) == 4
    assert min(shape.n_pairs for shape in header.shapes) == 0


def test_pairs_of_several_corpora_are_numbered_consecutively() -> None:
    mixture = Mixture(
        [MemoryCorpus(SOURCES[:1], TARGETS[:1]), MemoryCorpus(SOURCES[1:], TARGETS[1:])]
    )
    assert mixture.read("target", np.array([3, 0, 1])).tolist() == [29, 30, 31, 1, 21, 1, 22, 23, 1]
