"""Groups of options remember which of them were given."""

from dataclasses import dataclass

from transept.cli.options import given, remembers_given


@remembers_given
@dataclass(frozen=True, kw_only=True)
class Beam:
    size: int = 4
    alpha: float = 0.6


def test_given_returns_an_option_that_was_given_its_default() -> None:
    assert given(Beam(size=4)) == {"size": 4}
    assert given(Beam()) == {}
    assert Beam(size=4) == Beam()
