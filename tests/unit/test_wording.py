"""Plurals in messages."""

from transept.wording import counted


def test_counted_adds_plural_s_except_for_one() -> None:
    assert [counted(n, "piece") for n in (0, 1, 2, 1200)] == [
        "0 pieces", "1 piece", "2 pieces", "1,200 pieces"
    ]  # fmt: skip
