import pytest
import torch

from transept.model import transformer
from transept.model.attention import record_attention, reference_attention
from transept.model.config import ModelConfig
from transept.model.packing import Band, Blocks, Tokens, self_mask, visible
from transept.model.transformer import Transformer


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


@pytest.mark.parametrize(
    ("length", "ids"),
    [(6, [5, 6, 7, 8, 9, 1]), (8, [5, 6, 0, 7, 0, 8, 9, 1]), (20, [5, 6, 0, 7, 0, 0, 8, 9, 1])],
)
def test_some_padding_may_stay(length: int, ids: list[int]) -> None:
    rows = torch.tensor([[5, 6, 0], [7, 0, 0], [8, 9, 1]])
    tokens = Tokens.padded(rows, pad_id=0).without_padding(lambda _: length)
    assert tokens.ids.tolist() == ids
    in_rows = tokens.layout.to_rows(tokens.ids)
    assert torch.equal(tokens.layout.to_flat(in_rows), tokens.ids)
    assert torch.equal(in_rows * (rows > 0), rows)


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


@pytest.mark.parametrize("band", [Band.restricted(9), Band.causal_restricted(5), Band(70, 3)])
@pytest.mark.parametrize("lengths", [[[500], [333]], [[200, 1, 299], [120, 379]]])
def test_blocks_equal_a_mask_of_whole_rows(band: Band, lengths: list[list[int]]) -> None:
    """Also with several sentences in a row, and padding at its end."""
    segments, positions = torch.zeros(2, 2, 501, dtype=torch.long)
    for row, sentences in enumerate(lengths):
        ends = torch.tensor(sentences).cumsum(0).tolist()
        for number, (length, end) in enumerate(zip(sentences, ends, strict=True), 1):
            segments[row, end - length : end] = number
            positions[row, end - length : end] = torch.arange(length)
    layout = Tokens.tiled(torch.ones_like(segments), segments, positions).layout
    blocks = self_mask(layout, band)
    assert isinstance(blocks, Blocks)
    q, k, v = torch.randn(3, 2, 4, 501, 8, dtype=torch.double, requires_grad=True)
    real = segments.gt(0)[:, None, :, None]
    expected = reference_attention(q, k, v, visible(layout, layout, band)) * real
    found = blocks.attend(reference_attention, q, k, v) * real
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    for one, other in zip(
        torch.autograd.grad(found, (q, k, v), upstream),
        torch.autograd.grad(expected, (q, k, v), upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("key", ["encoder_window", "decoder_window"])
def test_network_with_long_rows_computes_in_blocks(key: str) -> None:
    """The same logits and recorded weights as with sentences in rows of their own."""
    torch.manual_seed(1)
    config = ModelConfig.preset("tiny", vocab_size=50, **{key: 8})
    model = Transformer(config).eval()
    long, short = torch.randint(5, 50, (2, 400)), torch.randint(5, 50, (2, 12))
    source, target = (long, short) if key == "encoder_window" else (short, long)
    with torch.no_grad(), record_attention(model) as weights:
        blocked = model(source, target)
    attended = weights[f"{key[:7]}.layers.0.self_attention"]
    assert attended.shape == (2, config.n_heads, 400, 400)
    assert int((attended > 0).sum(-1).max()) == 8
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformer, "self_mask", lambda layout, band: visible(layout, layout, band))
        whole = model(source, target)
    torch.testing.assert_close(blocked, whole, rtol=1e-4, atol=1e-4)
