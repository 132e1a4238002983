import math

import pytest
import torch

from transept.errors import DataError
from transept.model.packing import Tokens
from transept.model.positions import LearnedPositions, SinusoidalPositions, sinusoids


def test_sinusoids_match_paper_formula() -> None:
    table = sinusoids(torch.arange(50), 16)
    for pos, i in [(0, 0), (1, 0), (7, 3), (49, 7)]:
        angle = pos / 10_000 ** (2 * i / 16)
        assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
        assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)


def test_wavelengths_range_from_2_pi_to_10000_times_2_pi() -> None:
    d_model = 512
    quarter = sinusoids(torch.tensor([0, 1]), d_model)
    first = torch.atan2(quarter[1, 0], quarter[1, 1]).item()
    last = torch.atan2(quarter[1, -2], quarter[1, -1]).item()
    assert 2 * math.pi / first == pytest.approx(2 * math.pi)
    assert 2 * math.pi / last == pytest.approx(10_000 ** (1 - 2 / d_model) * 2 * math.pi)


@pytest.mark.parametrize("k", [1, 3, 17])
def test_shifted_position_is_linear_function_of_position(k: int) -> None:
    """PE(pos + k) = R_k PE(pos): a rotation of each pair, the same for every pos."""
    d_model = 32
    omega = 10_000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    sin, cos = (k * omega).sin(), (k * omega).cos()
    rotation = torch.zeros(d_model, d_model, dtype=torch.float64)
    even, odd = torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)
    rotation[even, even], rotation[even, odd] = cos, sin
    rotation[odd, even], rotation[odd, odd] = -sin, cos
    positions = torch.arange(200)
    shifted = sinusoids(positions + k, d_model)
    torch.testing.assert_close(sinusoids(positions, d_model) @ rotation.T, shifted)


def test_sinusoids_support_any_length() -> None:
    module = SinusoidalPositions(8, n_rows=4)
    layout = Tokens.padded(torch.ones(1, 11, dtype=torch.long), pad_id=0).layout
    torch.testing.assert_close(module(layout), sinusoids(torch.arange(11), 8).float())


def test_learned_positions_reject_longer_sentence() -> None:
    module = LearnedPositions(8, max_positions=4)
    layout = Tokens.padded(torch.ones(1, 5, dtype=torch.long), pad_id=0).layout
    with pytest.raises(DataError, match=r"5 tokens is longer than the 4 learned positions; split"):
        module(layout)
