"""Matrix products in 8-bit integers.

A row w of a matrix is rounded to integers, round(w / s) with s = max|w| / 119. A row of the input
is rounded too, with its own unit max|x| / 127. There are several ways to multiply the integers. All
are exact, so a result depends neither on the way nor on the other rows of the input. Therefore the
way may depend on the number of rows. Whether a matrix is rounded at all may not.

`MklProduct` and `Fbgemm` are for x86_64, the other ways for aarch64.
"""

import warnings
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Protocol, runtime_checkable

import torch

from transept.shapes import Float, Int, Tensor

LARGEST_WEIGHT, LARGEST_INPUT = 119, 127
"""A weight is at most 119, because it is also written as 16 a + b with a and b from −8 to 7."""
SMALLEST = 1e-30
"""The unit of a row of zeros is this, not 0."""
FAILURES = (AttributeError, NotImplementedError, RuntimeError)
"""What torch raises if it lacks an operator, or if an operator does not support the machine."""


_packing = Lock()
"""Guards the global setting of the quantized engine."""


def _prepacked(weight: Int[Tensor, "O I"], engine: str) -> object:
    """The matrix in the memory layout of one of torch's quantized engines."""
    with _packing:
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = engine
        try:
            packed: object = torch.ops.quantized.linear_prepack(weight, None)
        finally:
            torch.backends.quantized.engine = before
    return packed


@runtime_checkable
class IntegerProduct(Protocol):
    """A way to multiply integers. `most_rows` is the largest number of rows that it suits."""

    most_rows: int

    def __init__(self, weight: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        """Prepare a matrix of type int8 with numbers from −119 to 119."""

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """Round x, which is from −127 to 127, multiply, and multiply each output by its scale.

        The sum of integers is exact. x may be overwritten.
        """


class MklProduct:
    """MKL's product, which is the fastest way on x86_64 for few rows."""

    most_rows = 2**31

    def __init__(self, weight: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        self._weight, self._scales = weight.T, scales

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """The product, converted from 32-bit integers."""
        product = torch._int_mm(x.round_().to(torch.int8), self._weight)
        return product.float().mul_(self._scales)


class Fbgemm:
    """FBGEMM's product, which also rounds the input and multiplies by the scales."""

    most_rows = 2**31

    def __init__(self, weight: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        zeros = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated, as in `Dynamic`
            scaled = torch._make_per_channel_quantized_tensor(weight, scales.double(), zeros, 0)
        self._weight = _prepacked(scaled, "fbgemm")
        self._product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """The product. Integers without a sign stand for the input: their zero point is 128."""
        # A NaN would become an integer. `InIntegers` multiplies by the unit, which is NaN too.
        product: Tensor = self._product(x, 1.0, 128, self._weight)
        return product


class OneDnn:
    """oneDNN's product. On aarch64 it is fast only with one scale per matrix, which is 1 here."""

    most_rows = 2**31

    def __init__(self, weight: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        self._weight, self._scales = torch.ops.onednn.qlinear_prepack(weight, None), scales
        self._scale, self._zero = torch.ones(1), torch.zeros(1, dtype=torch.int32)
        self._product = torch.ops.onednn.qlinear_pointwise.default

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """The product. For oneDNN, scales are 1 and zero points 0."""
        product: Tensor = self._product(
            x.round_().to(torch.int8), 1.0, 0, self._weight, self._scale, self._zero, None,
            1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return product.mul_(self._scales)


class Dynamic:
    """The product of torch's dynamic quantization, which keeps the matrix in its fastest order.

    It finds the range of the whole input and divides it into 255 steps. One more row makes the
    range −128 to 127, so that a step is 1. On aarch64 it keeps what it prepares for two numbers of
    rows, and must not run in two threads at once. So the input is padded to 8 rows or a multiple of
    16, and each thread takes a copy.
    """

    most_rows = 15

    def __init__(self, weight: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        self._scales = scales
        with warnings.catch_warnings():
            # torch will remove it some day. Then `is_exact` is false, and other ways are used.
            warnings.simplefilter("ignore")
            self._weight = torch._make_per_tensor_quantized_tensor(weight, 1.0, 0)
            self._free = [self._packed()]
        self._product = torch.ops.quantized.linear_dynamic.default

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """The product of the first rows."""
        n_rows, n_inputs = x.shape
        packed = self._free.pop() if self._free else self._packed()
        n_padded = 8 if n_rows < 8 else n_rows // 16 * 16 + 16
        padded = torch.cat([x.round_(), _last_rows(n_padded - n_rows, n_inputs)])
        # A range with NaN raises. `InIntegers` multiplies by the largest number, which is NaN too.
        product: Tensor = self._product(padded.nan_to_num_(), packed, False)
        self._free.append(packed)
        return product[:n_rows].mul_(self._scales)

    def _packed(self) -> object:
        return _prepacked(self._weight, "onednn")


@lru_cache
def _last_rows(n_rows: int, n_inputs: int) -> Float[Tensor, "N I"]:
    rows = torch.zeros(n_rows, n_inputs)
    rows[0, :2] = torch.tensor([-128.0, 127.0])
    return rows


class Halves:
    """Two products in 4 bits, 16 x A + x B: on aarch64 the fastest way for few rows.

    The operator finds the range of each row of its input and divides it into 255 steps. Two more
    columns, whose weights are zero, make the range −128 to 127, so that a step is 1.
    """

    most_rows = 8

    def __init__(self, weight: Int[Tensor, "O I"], scales: Float[Tensor, " O"]) -> None:
        n_outputs, n_inputs = weight.shape
        self._scales = scales
        shifted = torch.nn.functional.pad(weight, (0, 2)) + 8
        halves = torch.cat([(shifted >> 4) + 8, shifted & 15]).view(torch.uint8)
        pairs = halves[:, 0::2] | (halves[:, 1::2] << 4)  # two numbers plus 8 in a byte
        powers = torch.tensor([16.0, 1.0]).repeat_interleave(n_outputs)
        self._sizes = n_inputs + 2, n_inputs + 2, 2 * n_outputs
        pack = torch.ops.aten._dyn_quant_pack_4bit_weight
        self._weight = pack(pairs, powers[:, None], None, *self._sizes)
        self._product = torch.ops.aten._dyn_quant_matmul_4bit.default

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """The product, as the sum of its halves."""
        wide = torch.cat([x.round_(), _full_range(x.shape[0])], dim=1)
        product: Tensor = self._product(wide, self._weight, *self._sizes)
        high, low = product.chunk(2, dim=1)
        return high.add_(low).mul_(self._scales)


@lru_cache
def _full_range(n_rows: int) -> Float[Tensor, "N 2"]:
    return torch.tensor([[-128.0, 127.0]]).repeat(n_rows, 1)


WAYS: Mapping[str, type[IntegerProduct]]
if "fbgemm" in torch.backends.quantized.supported_engines:
    # The others are exact on x86_64, too, but several times as slow as single precision.
    WAYS = {"mkl": MklProduct, "fbgemm": Fbgemm}
else:
    WAYS = {"onednn": OneDnn, "dynamic": Dynamic, "halves": Halves}


@lru_cache
def is_exact(way: str) -> bool:
    """Whether this machine has the operator, and it is exact.

    Without VNNI, the products of x86_64 overflow: they add two products of 8 bits in 16 bits.
    """
    n_inputs = 64
    signs = torch.tensor([[1], [-1]]) ** torch.arange(2 * n_inputs).view(2, n_inputs)
    weight = torch.cat([signs * LARGEST_WEIGHT, torch.arange(-30, 34).expand(6, -1)])
    x = torch.cat([signs * LARGEST_INPUT, torch.arange(64, 0, -1)[None]]).float()
    exact = x @ weight.T.float()
    try:
        found = WAYS[way](weight.to(torch.int8), torch.ones(len(weight)))(x)
    except FAILURES:
        return False
    return torch.equal(found, exact)


class InIntegers:
    """A matrix in 8-bit integers. `ways` has the way for each number of rows and more."""

    def __init__(
        self,
        weight: Float[Tensor, "O I"],
        bias: Float[Tensor, " O"] | None,
        ways: Mapping[int, str],
    ) -> None:
        weight = weight.detach()
        self._bias = None if bias is None else bias.detach()
        largest = weight.abs().amax(dim=1, keepdim=True).clamp_min_(SMALLEST)
        rounded = (weight * (LARGEST_WEIGHT / largest)).round_().to(torch.int8)
        scales = largest[:, 0] / LARGEST_WEIGHT
        products = {way: WAYS[way](rounded, scales) for way in dict.fromkeys(ways.values())}
        self._least_rows = sorted(ways)
        self._products = [products[ways[rows]] for rows in self._least_rows]

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        unit = x.abs().amax(dim=1, keepdim=True).mul_(1 / LARGEST_INPUT).clamp_min_(SMALLEST)
        product = self._products[max(bisect_right(self._least_rows, x.shape[0]) - 1, 0)]
        y = product(torch.div(x, unit))
        return y.mul_(unit) if self._bias is None else torch.addcmul(self._bias, y, unit, out=y)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        out.copy_(self(x))

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return self(x).add_(y)
