"""Which library multiplies matrices fastest on this processor's CPU, and training with it.

On x86_64, torch multiplies matrices in single precision with MKL. On AMD's processors MKL does not
use AVX-512: with Zen 5 it computes 110 GFLOP/s per core, and oneDNN, which torch also has, 250.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from timeit import timeit
from typing import Any, Literal, NamedTuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from transept.shapes import Float, Tensor

Library = Literal["MKL", "oneDNN", "other"]
MUCH_FASTER = 1.5
"""The ratio is 2.3 on an AMD EPYC (Zen 5), and about 1 in the record of an Intel Xeon."""
WORTHWHILE = 2**20
"""Products of fewer multiplications take longer with oneDNN."""
FINEST = 32
"""The distance of numbers of rows that oneDNN multiplies, for 32 to 1024 rows."""


@lru_cache
def fastest_library() -> Library:
    """MKL, or oneDNN where it is much faster. `other`: torch has no MKL, as on ARM.

    Measured once per process, in 3 ms.
    """
    if not torch.backends.mkl.is_available():
        return "other"
    if not torch.backends.mkldnn.is_available():
        return "MKL"
    x, weight = torch.ones(64, 512), torch.ones(512, 512)
    ways = [partial(product, x, weight) for product in (F.linear, _product)]
    with torch.inference_mode():
        # In turn, so that other processes slow both: dropout's masks depend on the answer, and a
        # run that resumes must get the same one.
        times = [[timeit(way, number=1) for way in ways] for _ in range(10)]
    mkl, onednn = map(min, zip(*times, strict=True))
    return "oneDNN" if mkl > MUCH_FASTER * onednn else "MKL"


def convenient(n_rows: int) -> int:
    """This number of rows, or a slightly larger one that can be multiplied in a known way.

    oneDNN compiles a product for each number of rows, in 0.5 ms, and keeps 0.6 MB of code for each
    of the last thousand. So there are few numbers: powers of two up to 32, and then at most 16
    from a power of two to the next.
    """
    if fastest_library() != "oneDNN":
        return n_rows
    power = 1 << max(n_rows - 1, 0).bit_length()
    if n_rows <= FINEST:
        return power
    distance = max(FINEST, power // 32)
    return -(-n_rows // distance) * distance


def products_in(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Multiply matrices in this precision, and as fast as possible, within the block."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    on_cpu = device.type == "cpu"
    return ByOneDnn() if on_cpu and fastest_library() == "oneDNN" else nullcontext()


def _product(
    x: Float[Tensor, "N I"], weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None = None
) -> Float[Tensor, "N O"]:
    """`x weightᵀ + bias` by oneDNN."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return product


class _Linear(torch.autograd.Function):
    """`_product` with gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        [d_out] = outer
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            _product(d_out, weight.T) if needs_x else None,
            _product(d_out.T, x.T) if needs_weight else None,
            d_out.sum(0) if needs_bias else None,
        )


class ByOneDnn(TorchFunctionMode):
    """A context in which large products of matrices, and their gradients, are oneDNN's.

    Only in single precision on a CPU, and not in compiled code. Other products are torch's.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function, or the same by oneDNN."""
        ours = None if torch.compiler.is_compiling() else _OURS.get(function)
        if ours is None or kwargs or not ours.suits(*args):
            return function(*args, **(kwargs or {}))
        return ours.call(*args)


class _Ours(NamedTuple):
    """A function by oneDNN, and whether it suits the arguments."""

    call: Callable[..., Tensor]
    suits: Callable[..., bool]


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return y


def _are_suited(a: Tensor, b: Tensor) -> bool:
    """Whether these are large matrices in single precision on a CPU."""
    return (
        a.dim() == b.dim() == 2
        and a.dtype == b.dtype == torch.float32
        and a.is_cpu
        and len(a) * b.numel() >= WORTHWHILE
        and not torch.is_autocast_enabled("cpu")
    )


_OURS: Mapping[Callable[..., Any], _Ours] = {
    F.linear: _Ours(_linear, lambda x, weight, bias=None: _are_suited(x, weight)),
    torch.mm: _Ours(lambda a, b: _linear(a, b.T), _are_suited),
    torch.addmm: _Ours(
        lambda bias, a, b: _linear(a, b.T, bias),
        lambda bias, a, b: bias.dim() == 1 and _are_suited(a, b),
    ),
    Tensor.addmm_: _Ours(
        lambda y, a, b: y.add_(_linear(a, b.T)),
        lambda y, a, b: _are_suited(a, b),
    ),
}
