import pytest
import torch

from transept.model.packing import Band, Tokens, visible


def test_layout_without_padding_round_trips_rows() -> None:
    rows = torch.tensor([[5, 6, 1, 0], [7, 1, 0, 0], [8, 9, 9, 1]])
    tokens = Tokens.padded(rows, pad_id=0).without_padding()
    layout = tokens.layout
    assert tokens.ids.tolist() == [5, 6, 1, 7, 1, 8, 9, 9, 1]
    assert layout.positions.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert layout.max_length == 4
    in_rows = layout.to_rows(tokens.ids)
    real = layout.segments == 1
    sentences = [row[keep].tolist() for row, keep in zip(in_rows, real, strict=True)]
    assert sentences == [[5, 6, 1], [7, 1], [8, 9, 9, 1]]
    assert torch.equal(layout.to_flat(in_rows), tokens.ids)


def test_shifted_right_prepends_start_id_to_each_sentence() -> None:
    padded = Tokens.padded(torch.tensor([[5, 6, 1], [7, 1, 0]]), pad_id=0)
    assert padded.shifted_right(3).ids.tolist() == [3, 5, 6, 3, 7, 1]
    assert padded.without_padding().shifted_right(0).ids.tolist() == [0, 5, 6, 0, 7]


def rows(text: str) -> list[list[bool]]:
    return [[mark == "x" for mark in row] for row in text.split()]


@pytest.mark.parametrize(
    ("band", "expected"),
    [
        (Band(), "xxxx. xxxx. xxxx. xxxx. ....x"),
        (Band.causal(), "x.... xx... xxx.. xxxx. ....x"),
        (Band.restricted(3), "xx... xxx.. .xxx. ..xx. ....x"),
        (Band.restricted(4), "xxx.. xxxx. .xxx. ..xx. ....x"),
        (Band.causal_restricted(2), "x.... xx... .xx.. ..xx. ....x"),
        (Band.causal_restricted(1), "x.... .x... ..x.. ...x. ....x"),
    ],
)
def test_visible_mask_matches_band(band: Band, expected: str) -> None:
    layout = Tokens.padded(torch.tensor([[5, 6, 7, 1, 0]]), pad_id=0).layout
    assert visible(layout, layout, band)[0].tolist() == rows(expected)


def test_padding_query_sees_at_least_one_key() -> None:
    source = Tokens.padded(torch.tensor([[5, 1]]), pad_id=0).layout
    target = Tokens.padded(torch.tensor([[5, 1, 0]]), pad_id=0).layout
    assert visible(target, source, Band()).any(-1).all()
