import pytest

from transept.training.update import Schedule


def test_schedule_rises_linearly_then_decays_with_inverse_square_root() -> None:
    rate = Schedule(d_model=512, warmup_steps=4000)
    assert rate(1) == pytest.approx(512**-0.5 * 4000**-1.5)
    assert rate(2000) == pytest.approx(2000 * rate(1))
    assert rate(4000) == pytest.approx(512**-0.5 * 4000**-0.5) == pytest.approx(6.99e-4, rel=1e-3)
    assert rate(16_000) == pytest.approx(rate(4000) / 2)
    assert max(range(1, 10_000), key=rate) == 4000


def test_schedule_factor_scales_learning_rate() -> None:
    assert Schedule(256, 100, factor=2.0)(7) == 2 * Schedule(256, 100)(7)
