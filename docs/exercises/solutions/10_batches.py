"""Solution of exercise 10. In the package: `by_length` in `transept.data.batching.layouts`."""


def batches(lengths: list[tuple[int, int]], budget: int) -> list[list[int]]:
    """Return batches of pairs, each as a list of indices into `lengths`."""
    found: list[list[int]] = []
    batch: list[int] = []
    for pair in sorted(range(len(lengths)), key=lambda pair: max(lengths[pair])):
        rows = [*batch, pair]
        source = max(lengths[row][0] for row in rows)
        target = max(lengths[row][1] for row in rows)
        if len(rows) * max(source, target) > budget:
            found.append(batch)
            batch = []
        batch = [*batch, pair]
    return [*found, batch]
