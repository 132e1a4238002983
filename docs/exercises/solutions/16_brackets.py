"""Solution of exercise 16. In the package: `transept.tasks.parsing.repair`."""


def repair(symbols: list[str], n_words: int) -> list[str]:
    """Return the symbols of a well-formed tree over `n_words` words."""
    result, stack, words = ["(S"], ["S"], 0

    def close(depth: int) -> None:
        """Close constituents until `depth` are open."""
        while len(stack) > depth:
            label = stack.pop()
            if result[-1] == f"({label}":
                result.pop()
            else:
                result.append(f"){label}")

    for symbol in symbols[1:]:
        label = symbol[1:]
        if symbol.startswith("("):
            stack.append(label)
            result.append(symbol)
        elif symbol.startswith(")"):
            if label in stack:
                innermost = len(stack) - 1 - stack[::-1].index(label)
                close(max(1, innermost))
        elif words < n_words:
            words += 1
            result.append(symbol)
    close(1)
    return [*result, *["XX"] * (n_words - words), ")S"]
