"""Plurals for messages."""


def counted(n: int, thing: str) -> str:
    """`1 file`, `2 files`: for regular plurals."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"
