"""Table 1: what a layer costs by the length n of a sequence and the width d, measured.

    python benchmarks/table1.py [--device cuda] [--quick] [--json FILE]

Each layer maps a sequence of n vectors of width d to another one, without a gradient: equation (1)
with heads of 64 and without projections, as the table counts it; the same restricted to r = 64
positions; an LSTM; a convolution and a separable one, of kernel width k = 3. A CPU computes one
sequence in float32 on one thread, a GPU a batch of 64 in bfloat16. One would not occupy it.

An exponent is fitted to the sizes that take at least ten times as long as the fastest one, or to
the slowest quarter. The time of others is mostly that of starting the work.
"""

from collections.abc import Callable
from itertools import product
from statistics import median

import numpy as np
import torch
from measuring import Row, parser_of, report, seconds
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from transept.model.packing import Band, Blocks, Tokens, self_mask

LENGTHS = [2**power for power in range(4, 14)]
WIDTHS = [128, 256, 512, 1024]
HEAD, R, K = 64, 64, 3
LONGEST = 1.0
"""Seconds. After a size that takes longer, the longer sequences are not measured."""
ROUNDS = 5
BATCH = {"cpu": 1, "cuda": 64}
"""Sequences at once."""
PREDICTED = {
    "self-attention": (2, 1),
    "restricted self-attention": (1, 1),
    "recurrent": (1, 2),
    "convolutional": (1, 2),
    "separable convolutional": (1, 2),
}
"""The exponents of n and d in Table 1. The separable convolution has k · n · d + n · d²."""

Sizes = tuple[int, int]
Work = Callable[[], Tensor]


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *_: float) -> Tensor:
    """Equation (1) with torch's kernels."""
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=None if mask is None else mask[:, None]
    )


def literal(q: Tensor, k: Tensor, v: Tensor, *_: Tensor | float | None) -> Tensor:
    """Equation (1) as matrix products, which can be counted."""
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v


def layer(name: str, n: int, d: int, batch: int = 1, attend: Callable[..., Tensor] = fused) -> Work:
    """A layer with random weights and its input."""
    if name.endswith("attention"):
        q, k, v = torch.randn(3, batch, d // HEAD, n, HEAD)
        if name == "self-attention":
            return lambda: attend(q, k, v)
        layout = Tokens.padded(torch.ones(batch, n, dtype=torch.long), pad_id=0).layout
        mask = self_mask(layout, Band.restricted(R))
        if isinstance(mask, Blocks):
            return lambda: mask.attend(attend, q, k, v)
        return lambda: attend(q, k, v, mask)
    if name == "recurrent":
        lstm, steps = nn.LSTM(d, d), torch.randn(n, batch, d)
        return lambda: lstm(steps)[0]
    wide = nn.Conv1d(d, d, K, padding=K // 2, groups=d if name.startswith("separable") else 1)
    convolution = nn.Sequential(wide, nn.Conv1d(d, d, 1)) if wide.groups > 1 else wide
    x = torch.randn(batch, d, n)
    return lambda: convolution(x)


def flops(name: str, n: int, d: int) -> float:
    """Multiplications and additions of a layer."""
    if name == "recurrent":  # torch does not count those of an LSTM: four gates, two matrices
        return 2 * n * 4 * 2 * d * d
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        layer(name, n, d, attend=literal)()
    return float(counter.get_total_flops())


def exponents(measured: dict[Sizes, float], least: float) -> tuple[float, float]:
    """The exponents of n and d, by least squares in logarithms over values of at least `least`."""
    sizes = [size for size, value in measured.items() if value >= least]
    known = np.log([[n, d, np.e] for n, d in sizes])
    fitted, *_ = np.linalg.lstsq(known, np.log([measured[size] for size in sizes]), rcond=None)
    return float(fitted[0]), float(fitted[1])


def measure(name: str, lengths: list[int], widths: list[int], device: str) -> list[Row]:
    """Time, memory on a GPU, and operations of a layer by its sizes, with the exponents."""
    times: dict[Sizes, float] = {}
    rows = []
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for d, n in product(widths, lengths):
        if times.get((n // 2, d), 0.0) > LONGEST or (n > lengths[0] and (n // 2, d) not in times):
            continue
        work = layer(name, n, d, BATCH[device])
        if device == "cuda":
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        taken = seconds(work, ROUNDS, wait)
        times[n, d] = median(taken)
        size = f"n = {n}, d = {d}"
        rows.append(Row.of(size, name, [1000 * each for each in taken], "ms"))
        if device == "cuda":
            used = torch.cuda.max_memory_allocated() - before
            rows.append(Row.once(size, name, used / 2**20, "MiB"))
        rows.append(Row.once(size, name, BATCH[device] * flops(name, n, d) / 1e9, "GFLOP"))
    counted = {size: flops(name, *size) for size in times}
    long = {size: count for size, count in counted.items() if size[0] >= 8 * R}
    least = min(10 * min(times.values()), float(np.quantile([*times.values()], 0.75)))
    fits = {
        "Table 1": PREDICTED[name],
        "operations": exponents(long or counted, 0.0),
        "time": exponents(times, least),
    }
    for what, fitted in fits.items():
        for axis, value in zip("nd", fitted, strict=True):
            rows.append(Row.once(f"exponent of {axis}, {what}", name, value, ""))
    return rows


@torch.inference_mode()
def main() -> None:
    parser = parser_of(__doc__ or "", quick="only lengths to 512 and widths to 256")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    torch.set_default_device(args.device)
    if args.device == "cuda":
        torch.set_default_dtype(torch.bfloat16)
    lengths = [n for n in LENGTHS if n <= 512 or not args.quick]
    widths = [d for d in WIDTHS if d <= 256 or not args.quick]
    rows = [row for name in PREDICTED for row in measure(name, lengths, widths, args.device)]
    device = torch.cuda.get_device_name() if args.device == "cuda" else None
    report(f"table1_{args.device}", rows, [], ["torch"], args.json, device)


if __name__ == "__main__":
    main()
