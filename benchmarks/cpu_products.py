"""Products of matrices on a CPU: GFLOP/s of each way that torch offers, on one thread.

The product is x W + b for the shapes of the bundled models and of base. x and the result are in
single precision, so the times include rounding or converting x. The ways run interleaved. A way is
omitted if the machine does not support it, or if it is much slower than others with fewer rows.

    python benchmarks/cpu_products.py [--quick] [--json FILE]
"""

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial

import torch
from cpu_decoding import one_thread
from measuring import Row, parser_of, print_across, write_record
from torch import Tensor
from torch.nn import functional as F

from transept.engines.native.integers import FAILURES, WAYS, InIntegers, is_exact
from transept.engines.native.weights import Prepacked, Transposed, Unchanged

SHAPES = {"small, d × d": (256, 256), "small, inner": (1024, 256), "small, projection": (8000, 256),
          "base, inner": (2048, 512), "base, projection": (37000, 512)}  # fmt: skip
"""Outputs and inputs."""
ROWS = (1, 4, 8, 32, 128)
HOPELESS = 30
"""A way that takes this many times as long as the fastest is not measured with more rows."""
BRIEF = 0.002
"""A round of a way takes at least this many seconds."""
OURS = "native-int8"
Way = Callable[[Tensor], Tensor]
aten, quantized, onednn = torch.ops.aten, torch.ops.quantized, torch.ops.onednn


def converted(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Way:
    """The product in another precision."""
    weight, bias = weight.to(dtype), bias.to(dtype)
    return lambda x: F.linear(x.to(dtype), weight, bias).float()


def reordered_half(weight: Tensor, bias: Tensor) -> Way:
    product = Prepacked.by_onednn(weight.half(), bias.half())
    return lambda x: product(x.half()).float()


def rounded(x: Tensor) -> tuple[Tensor, Tensor]:
    """Integers with a scale per row, and the scales."""
    scale = x.abs().amax(1, keepdim=True) * (1 / 127)
    return (x * scale.reciprocal()).round_().to(torch.int8), scale


def weight_only(weight: Tensor, bias: Tensor) -> Way:
    """Integers that are converted in the product."""
    integers, scale = rounded(weight)
    return lambda x: aten._weight_int8pack_mm(x, integers, scale[:, 0]).add_(bias)


def int_mm(weight: Tensor, bias: Tensor) -> Way:
    integers, scale = rounded(weight)

    def product(x: Tensor) -> Tensor:
        y, unit = rounded(x)
        return torch.addcmul(bias, torch._int_mm(y, integers.T) * unit, scale[:, 0])

    return product


def scale_per_row(weight: Tensor, bias: Tensor) -> Way:
    """The product of oneDNN with the weight's scales. `OneDnn` of `integers` has one scale."""
    integers, scale = rounded(weight)
    packed = onednn.qlinear_prepack(integers, None)
    zeros = torch.zeros(len(integers), dtype=torch.int32)

    def product(x: Tensor) -> Tensor:
        y, unit = rounded(x)
        found = onednn.qlinear_pointwise(
            y, 1.0, 0, packed, scale[:, 0], zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        return torch.addcmul(bias, found, unit)

    return product


def dynamic(weight: Tensor, bias: Tensor, engine: str) -> Way:
    """Dynamic quantization by torch: x has one scale, so the result depends on the other rows."""
    torch.backends.quantized.engine = engine
    integers, _ = rounded(weight)
    scaled = torch._make_per_tensor_quantized_tensor(integers, 0.01, 0)
    packed = quantized.linear_prepack(scaled, bias)

    def product(x: Tensor) -> Tensor:
        torch.backends.quantized.engine = engine
        result: Tensor = quantized.linear_dynamic(x, packed, reduce_range=False)
        return result

    return product


def four_bits(weight: Tensor, bias: Tensor) -> Way:
    """Weights of 4 bits with a scale per row: too coarse for translation, but fast on aarch64."""
    n_outputs, n_inputs = weight.shape
    pairs = torch.zeros(n_outputs, n_inputs // 2, dtype=torch.uint8)
    sizes = n_inputs, n_inputs, n_outputs
    packed = aten._dyn_quant_pack_4bit_weight(pairs, torch.ones(n_outputs, 1), bias, *sizes)
    return lambda x: aten._dyn_quant_matmul_4bit(x, packed, *sizes)


def ways(weight: Tensor, bias: Tensor) -> dict[str, Way]:
    """Every way that works here."""
    makers: dict[str, Callable[[], Way]] = {
        "float32": lambda: Unchanged(weight, bias),
        "float32, transposed": lambda: Transposed(weight, bias),
        "float32, oneDNN's layout": lambda: Prepacked.by_onednn(weight, bias),
        "float32, MKL's layout": lambda: Prepacked.by_mkl(weight, bias),
        "bfloat16": lambda: converted(weight, bias, torch.bfloat16),
        "float16": lambda: converted(weight, bias, torch.float16),
        "float16, oneDNN's layout": lambda: reordered_half(weight, bias),
        "int8 weights": lambda: weight_only(weight, bias),
        "int8, `_int_mm`": lambda: int_mm(weight, bias),
        "int8, oneDNN": lambda: scale_per_row(weight, bias),
        "int4 weights": lambda: four_bits(weight, bias),
    }
    for engine in torch.backends.quantized.supported_engines:
        if engine != "none":
            name = f"int8, dynamic, {engine}"
            makers[name] = partial(dynamic, weight, bias, engine)
    for way in filter(is_exact, WAYS):
        makers[f"{OURS}, {way}"] = partial(InIntegers, weight, bias, {1: way})
    found = {}
    for name, make in makers.items():
        try:
            product = make()
            product(torch.ones(1, weight.shape[1]))
            found[name] = product
        except FAILURES as error:
            print(f"{name}: not supported ({str(error).splitlines()[0][:80]})")
    return found


def measure(shape: tuple[int, int], work: str, rounds: int) -> list[Row]:
    """GFLOP/s of each way for each number of rows."""
    weight, bias = torch.randn(shape) / shape[1] ** 0.5, torch.randn(shape[0])
    hopeful, rows = ways(weight, bias), []
    for n_rows in ROWS:
        x = torch.randn(n_rows, shape[1])
        suited = {name: way for name, way in hopeful.items() if n_rows <= most_rows(name)}
        repeats = {name: round(BRIEF / seconds(way, x, 1)) + 1 for name, way in suited.items()}
        times: Mapping[str, list[float]] = {name: [] for name in suited}
        for _ in range(rounds):
            for name, way in suited.items():
                times[name].append(seconds(way, x, repeats[name]))
        work_done = 2e-9 * n_rows * weight.numel()
        plural = "row" if n_rows == 1 else "rows"
        for name, values in times.items():
            rates = [work_done / value for value in values]
            rows.append(Row.of(f"{work}, {n_rows} {plural}", name, rates, "GFLOP/s"))
        fastest = min(map(min, times.values()))
        hopeful = {name: hopeful[name] for name in times if min(times[name]) < HOPELESS * fastest}
    return rows


def most_rows(name: str) -> int:
    """The most rows that a way of `native-int8` is used for."""
    way = name.removeprefix(f"{OURS}, ")
    return WAYS[way].most_rows if way in WAYS else ROWS[-1]


def seconds(way: Way, x: Tensor, repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        way(x)
    return (time.process_time() - start) / repeats


@torch.inference_mode()
def main() -> None:
    arguments = parser_of(__doc__, quick="the shapes of small, three rounds").parse_args()
    one_thread()
    warnings.simplefilter("ignore")  # some operators are deprecated
    rows: list[Row] = []
    for work, shape in SHAPES.items():
        if not (arguments.quick and work.startswith("base")):
            rows += measure(shape, work, rounds=3 if arguments.quick else 5)
    print_across(rows)
    if arguments.json is not None:
        write_record("cpu_products", rows, [], ["torch"], arguments.json)


if __name__ == "__main__":
    main()
