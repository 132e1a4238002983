"""The gateway is the only way from the inner ring to the engines, and it leads there."""

from transept.engines import choice
from transept.gateway import Engines, engines


def test_the_gateway_returns_the_module_that_chooses_engines() -> None:
    promised: Engines = choice  # mypy compares the signatures
    assert engines() is promised
