"""The fused training step compared with autograd on the plain network."""

from typing import Any

import pytest
import torch

pytest.importorskip("triton")

from transept import ModelConfig, Transformer
from transept.engines.training.network import FusedNetwork, Tiles
from transept.model.packing import Tokens
from transept.model.positions import SinusoidalPositions
from transept.shapes import Tensor
from transept.training.loss import Loss

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TILES = Tiles(tile=16, row_tiles=2)
SOURCES = [[[7, 9], [12, 3]]]
TARGETS = [[[5, 11], [14, 2]]]


def side(lengths: list[list[list[int]]], vocab_size: int) -> Tokens:
    """Rows of two tiles, with sentences of these lengths in each tile, or one across both."""
    shape = (len(lengths), TILES.row_tiles * TILES.tile)
    ids, segments, positions = torch.zeros(3, *shape, dtype=torch.long).unbind()
    number = 0
    for row, tiles in enumerate(lengths):
        for tile, sentences in enumerate(tiles):
            at = tile * TILES.tile
            for length in sentences:
                number += 1
                where = slice(at, at + length)
                ids[row, where] = torch.randint(4, vocab_size, (length,))
                segments[row, where] = number
                positions[row, where] = torch.arange(length)
                at += length
    flat = [x.view(-1, TILES.tile).to(DEVICE) for x in (ids, segments, positions)]
    return Tokens.tiled(*flat, row_tiles=TILES.row_tiles)


def network(**changes: Any) -> tuple[Transformer, FusedNetwork, Tensor]:
    torch.manual_seed(0)
    sizes = {"vocab_size": 50, "n_layers": 1, "d_model": 32, "d_ff": 48, "n_heads": 2}
    config = ModelConfig(**sizes | {"dropout": 0.0} | changes)
    model = Transformer(config).to(DEVICE)
    seed = torch.tensor([3, 4], dtype=torch.int32, device=DEVICE)
    fused = FusedNetwork(model, Loss(0.1, 0), TILES, seed, torch.float32)
    return model, fused, seed


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, marks=pytest.mark.slow),
        {"d_k": 16, "d_v": 32, "encoder_window": 5, "decoder_window": 4},
        pytest.param({"tied_embeddings": "none", "decoder_start": "token"}, marks=pytest.mark.slow),
        pytest.param({"norm": "pre", "n_decoder_layers": 2}, marks=pytest.mark.slow),
        pytest.param(
            {
                "activation": "swish",
                "attention_bias": True,
                "output_bias": True,
                "positions": "learned",
                "max_positions": 40,
            },
            marks=pytest.mark.slow,
        ),
    ],
)
def test_fused_loss_and_gradients_match_autograd(changes: dict[str, object]) -> None:
    model, fused, _ = network(**changes)
    source, target = side(SOURCES, 50), side(TARGETS, 50)
    sums = fused(source, target, torch.tensor(0.125, device=DEVICE))
    actual = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    states = model.decoder_states(target, model.encode(source))
    expected = Loss(0.1, 0)(states, model.projection, target.ids)
    (expected.smoothed / 8).backward()
    tolerance = 2e-3 if DEVICE == "cuda" else 1e-5
    torch.testing.assert_close(sums.smoothed, expected.smoothed.detach(), rtol=tolerance, atol=0)
    torch.testing.assert_close(sums.nll, expected.nll.detach(), rtol=tolerance, atol=0)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        difference = (actual[name] - parameter.grad).norm()
        assert difference <= 10 * tolerance * parameter.grad.norm() + 1e-7, name


@pytest.mark.slow
def test_gradient_with_dropout_matches_finite_difference() -> None:
    model, fused, seed = network(dropout=0.3, attention_dropout=0.3)
    source, target = side(SOURCES, 50), side(TARGETS, 50)
    one = torch.tensor(1.0, device=DEVICE)
    loss = fused(source, target, one).smoothed
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    length = torch.stack([g.norm() for g in gradients]).norm()

    def at(distance: float) -> Tensor:
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.add_(gradient, alpha=distance / float(length))
        return fused(source, target, one).smoothed

    ahead = at(2e-2)
    behind = at(-4e-2)
    slope = (ahead - behind) / 4e-2
    torch.testing.assert_close(slope, length, rtol=2e-2, atol=0)
    seed += 1
    assert at(2e-2) != loss, "another seed drops other numbers"


@pytest.mark.slow
def test_gradients_accumulate_over_micro_batches() -> None:
    model, fused, _ = network()
    source, target = side(SOURCES, 50), side(TARGETS, 50)
    one = torch.tensor(1.0, device=DEVICE)
    fused(source, target, one)
    once = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    fused(source, target, one)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, 2 * once[name], rtol=1e-4, atol=1e-6)


def test_validating_long_sentence_keeps_position_table_address() -> None:
    model, fused, _ = network()
    where, values = fused.source_positions.data_ptr(), fused.source_positions.clone()
    positions = model.source_positions
    assert isinstance(positions, SinusoidalPositions)
    longer = 2 * len(positions.table)
    with torch.inference_mode():
        model.encode(torch.full((1, longer), 7, device=DEVICE))
    assert len(positions.table) > longer
    assert fused.source_positions.data_ptr() == where
    torch.testing.assert_close(fused.source_positions, values)
