"""A recorder of ONNX graphs: each operation appends a node and returns the name of its output.

In annotations of the recorder and its callers, a tensor is the name of a value with that shape.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from transept.quantization import Precision, pack
from transept.shapes import Float, Int, Tensor
from transept.version import __version__

OPSET, IR_VERSION = 17, 8
"""The first operator set with LayerNormalization, and the file format of that release of ONNX."""


class OnnxGraph:
    """A graph that is being recorded."""

    def __init__(self, precision: Precision, parent: "OnnxGraph | None" = None) -> None:
        """Start without nodes.

        Args:
            precision: How to store matrices.
            parent: The graph that this one is a branch of. It stores the weights of its branches.
        """
        self._precision: Precision = precision
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._stored: dict[str, Any] = {} if parent is None else parent._stored
        self._numbers: count[int] = count() if parent is None else parent._numbers

    def as_file(self, name: str, metadata: Mapping[str, str]) -> bytes:
        """The content of an ONNX file with the recorded graph, checked."""
        from onnx import checker, helper

        stored = list(self._stored.values())
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, stored)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        model.producer_name, model.producer_version = "transept", __version__
        helper.set_model_props(model, dict(metadata))
        content: bytes = model.SerializeToString()
        checker.check_model(content, full_check=True)
        return content

    # --- inputs and outputs ------------------------------------------------------------------

    def input(self, name: str, kind: type, *shape: int | str) -> Any:
        """Declare an input. A dimension with a name may have any size."""
        self._inputs.append(_declaration(name, kind, shape))
        return name

    def output(self, name: str, value: Any, *shape: int | str | None) -> None:
        """Declare a value as an output. The size of a dimension that is None is not declared."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(_declaration(name, np.float32, shape))

    # --- stored values -----------------------------------------------------------------------

    def constant(self, numbers: Any, kind: type = np.int64) -> Any:
        """Store a number or several."""
        return self.store(f"{kind.__name__} {numbers}", np.array(numbers, kind))

    def vector(self, name: str, weight: Float[Tensor, " D"]) -> Any:
        """Store a vector of weights."""
        return self.store(name, weight.detach().float().cpu().numpy())

    def matrix(self, name: str, weight: Float[Tensor, "O I"]) -> list[Any]:
        """Store a matrix: its numbers, or 8-bit integers and a column of scales."""
        packed = pack({f"{name}.weight": weight.detach().float().cpu()}, self._precision)
        return [self.store(part, one.view(len(one), -1).numpy()) for part, one in packed.items()]

    def store(self, name: str, array: Any) -> Any:
        """Store an array under a name, once."""
        from onnx import numpy_helper

        if name not in self._stored:
            self._stored[name] = numpy_helper.from_array(array, name)
        return name

    # --- operations --------------------------------------------------------------------------

    def op(self, kind: str, *inputs: Any, **attributes: Any) -> Any:
        """Append a node with one output."""
        (output,) = self.ops(1, kind, *inputs, **attributes)
        return output

    def ops(self, n_outputs: int, kind: str, *inputs: Any, **attributes: Any) -> list[Any]:
        """Append a node with several outputs."""
        from onnx import helper

        name = f"{kind}_{next(self._numbers)}"
        outputs = [f"{name}.{index}" for index in range(n_outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), outputs, name, **attributes))
        return outputs

    def either(
        self, condition: Tensor, then: Sequence[Tensor], otherwise: "Callable[[OnnxGraph], Any]"
    ) -> list[Any]:
        """The values `then` if the condition is true, else those that `otherwise` records."""
        from onnx import helper

        branches = {}
        for name in ("then_branch", "else_branch"):
            branch = OnnxGraph(self._precision, self)
            values = then if name == "then_branch" else otherwise(branch)
            for index, value in enumerate(values):
                branch.output(f"{name}.{index}", value, *[None] * 4)
            branches[name] = helper.make_graph(branch._nodes, name, [], branch._outputs)
        return self.ops(len(then), "If", condition, **branches)

    def linear(
        self,
        x: Float[Tensor, "N I"],
        name: str,
        weight: Float[Tensor, "O I"],
        bias: Float[Tensor, " O"] | None,
    ) -> Any:
        """`x W + b`."""
        whole = self._unpacked(*self.matrix(name, weight))
        biases = [] if bias is None else [self.vector(f"{name}.bias", bias)]
        return self.op("Gemm", x, whole, *biases, transB=1)

    def rows(self, index: Int[Tensor, " N"], name: str, weight: Float[Tensor, "O I"]) -> Any:
        """Rows of a matrix."""
        return self._unpacked(*(self.op("Gather", x, index) for x in self.matrix(name, weight)))

    def _unpacked(self, numbers: Tensor, scales: Tensor | None = None) -> Any:
        """A stored matrix in single precision.

        ONNX Runtime evaluates this when it loads the file. It would repeat DequantizeLinear in each
        run, or round the other factor of the product to 8 bits, too.
        """
        return numbers if scales is None else self.op("Mul", self.cast(numbers, np.float32), scales)

    def cast(self, value: Tensor, kind: type) -> Any:
        """A value as another type."""
        return self.op("Cast", value, to=_type_number(kind))

    def length(self, value: Tensor, axis: int) -> Any:
        """The size of one dimension."""
        return self.op("Squeeze", self.op("Shape", value, start=axis, end=axis + 1))

    def range(self, start: Int[Tensor, ""], end: Int[Tensor, ""]) -> Any:
        """The integers from `start` to `end` − 1."""
        return self.op("Range", start, end, self.constant(1))

    def heads(
        self, x: Float[Tensor, "N HDh"], shape: Int[Tensor, " 2"], n_heads: int, *widths: int
    ) -> list[Any]:
        """Split projected tokens into parts with heads of these widths, each `B H L Dh`.

        Args:
            x: The tokens on a flat axis.
            shape: The number of rows, and of tokens per row.
            n_heads: The number of heads in each part.
            *widths: The width of a head, for each part.
        """
        sizes = self.constant([n_heads * width for width in widths])
        parts = self.ops(len(widths), "Split", x, sizes, axis=1) if len(widths) > 1 else [x]
        shapes = [self.op("Concat", shape, self.constant([n_heads, w]), axis=0) for w in widths]
        rows = [self.op("Reshape", *one) for one in zip(parts, shapes, strict=True)]
        return [self.op("Transpose", one, perm=[0, 2, 1, 3]) for one in rows]


def _declaration(name: str, kind: type, shape: Sequence[int | str | None]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, _type_number(kind), shape)


def _type_number(kind: type) -> int:
    from onnx import helper

    number: int = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return number
