"""Products of matrices by oneDNN, compared with torch's own."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from transept.runtime import products
from transept.runtime.products import ByOneDnn, convenient, fastest_library
from transept.shapes import Tensor

Compute = Callable[[Tensor, Tensor, Tensor], Tensor]


def added(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A sum in place, which needs a tensor that is not a leaf."""
    return bias.repeat(len(x), 1).addmm_(x, weight.T)


FORMS: dict[str, Compute] = {
    "linear": F.linear,
    "linear without bias": lambda x, weight, bias: F.linear(x, weight) + bias,
    "mm": lambda x, weight, bias: torch.mm(x, weight.T) + bias,
    "addmm": lambda x, weight, bias: torch.addmm(bias, x, weight.T),
    "addmm_": added,
}


@pytest.fixture
def onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    if not torch.backends.mkl.is_available():
        pytest.skip("oneDNN replaces MKL only")
    monkeypatch.setattr(products, "WORTHWHILE", 1)


def make(n_rows: int = 7) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(n_rows, 5), torch.randn(3, 5), torch.randn(3)]


def gradients(compute: Compute, inputs: list[Tensor]) -> list[Tensor]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    out = compute(leaves[0], leaves[1], leaves[2])
    (out * torch.arange(out.numel()).view_as(out)).sum().backward()
    return [out, *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def calls(compute: Callable[[], object]) -> list[str]:
    """The names of the products that are computed."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        compute()
    names = [event.name for event in profile.events()]
    return [name for name in names if name in ("aten::addmm", "aten::mm", ONEDNN)]


ONEDNN = "mkldnn::_linear_pointwise"


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize("form", FORMS)
def test_products_and_gradients_are_those_of_torch(form: str) -> None:
    inputs = make()
    expected = gradients(FORMS[form], inputs)
    with ByOneDnn():
        assert ONEDNN in calls(lambda: gradients(FORMS[form], inputs))
        found = gradients(FORMS[form], inputs)
    assert len(found) == 4
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize(
    "compute",
    [
        lambda x, weight, bias: F.linear(x.double(), weight.double(), bias.double()),
        lambda x, weight, bias: F.linear(x[None], weight, bias),
        lambda x, weight, bias: torch.addmm(bias.repeat(len(x), 1), x, weight.T),
        lambda x, weight, bias: torch.addmm(bias, x, weight.T, alpha=2),
    ],
    ids=["double precision", "three axes", "a matrix added", "a factor"],
)
def test_other_products_are_those_of_torch(compute: Compute) -> None:
    inputs = make()
    expected = compute(*inputs)
    with ByOneDnn():
        assert ONEDNN not in calls(lambda: compute(*inputs))
        assert torch.equal(compute(*inputs), expected)


def test_small_products_are_those_of_torch() -> None:
    inputs = make()
    with ByOneDnn():
        assert ONEDNN not in calls(lambda: F.linear(*inputs))


@pytest.mark.usefixtures("onednn")
def test_autocast_is_respected() -> None:
    with ByOneDnn(), torch.autocast("cpu", torch.bfloat16):
        assert F.linear(*make()).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (1, 1),
        (2, 2),
        (3, 4),
        (17, 32),
        (32, 32),
        (33, 64),
        (1024, 1024),
        (1025, 1088),
        (4097, 4352),
    ],
)
def test_onednn_multiplies_few_numbers_of_rows(
    n_rows: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "fastest_library", lambda: "oneDNN")
    assert convenient(n_rows) == expected


def test_other_libraries_multiply_any_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "fastest_library", lambda: "MKL")
    assert convenient(33) == 33


def test_fastest_library_is_one_that_torch_has() -> None:
    has_mkl = torch.backends.mkl.is_available()
    assert fastest_library() in (("MKL", "oneDNN") if has_mkl else ("other",))
