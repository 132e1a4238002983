"""How messages count."""


def counted(n: int, thing: str) -> str:
    """`1 piece`, `2 pieces`: for things that add an s."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"
