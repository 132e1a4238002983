"""Which matrices of a network are multiplied in 8-bit integers on this machine.

Rounding the input takes as long as a small product, so integers are faster only for large matrices
or many rows. How large and how many depends on the machine. So both are measured once per shape of
a matrix, on one core, and the times are kept in the user's cache directory.

A search has few rows near its end, and a server may have a single sentence at a time. The choice
holds for all numbers of rows, because a translation must not depend on its batch. See `choose`.
"""

import json
import math
import os
import platform
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from transept.engines.native.integers import FAILURES, WAYS, InIntegers, is_exact
from transept.engines.native.weights import (
    MakeMatrix,
    PreparedMatrix,
    for_one_row,
    packed_for_cpu,
)
from transept.model.transformer import Transformer
from transept.runtime.products import fastest_library
from transept.runtime.storage import make_directory, write_json
from transept.shapes import Float, Tensor

Shape = tuple[int, int]
Times = Mapping[int, Mapping[str, float]]
"""Seconds of a product by number of rows, in single precision and in each way of integers."""
SINGLE = "packed float32"
ROWS = (1, 4, 8, 12, 16, 64, 256)
"""Numbers of rows to measure."""
SENTENCE = 16
"""The length of a typical sentence, in tokens."""
WORKLOADS = {
    "one sentence, greedy": (SENTENCE, 1),
    "one sentence, beam 4": (SENTENCE, 4),
    "a batch, greedy": (256, 16),
    "a batch, beam 4": (256, 64),
}
"""The rows of products in the encoder and in each of SENTENCE steps of the decoder."""
LARGEST = 2**21
"""Larger matrices have fewer outputs in the measurement. For base it takes 0.5 s in all."""
REPETITIONS = 3
HOPELESS = 10
"""A way that takes this many times as long is not measured with fewer rows."""


@dataclass(frozen=True)
class Use:
    """Matrices of one shape in the encoder or in the decoder, and how many there are."""

    part: str
    shape: Shape
    count: int

    def seconds(self, times: Times, workload: tuple[int, int], ways: Mapping[int, str]) -> float:
        """The time of a workload."""
        in_encoder = self.part == "encoder"
        rows = workload[0] if in_encoder else workload[1]
        return times[rows][ways[rows]] * self.count * (1 if in_encoder else SENTENCE)


@dataclass(frozen=True)
class IntegerPlan:
    """The matrices in integers: part of the network, shape, and the way by number of rows."""

    matrices: frozenset[tuple[str, Shape, tuple[tuple[int, str], ...]]]

    def maker(self, part: str) -> MakeMatrix:
        """A function that prepares a matrix of this part of the network."""
        single = packed_for_cpu if part == "encoder" else EitherLayout
        ways = {shape: dict(found) for where, shape, found in self.matrices if where == part}

        def make(weight: Tensor, bias: Tensor | None) -> PreparedMatrix:
            shape = weight.shape[0], weight.shape[1]
            if shape not in ways:
                return single(weight, bias)
            return InIntegers(weight, bias, ways[shape])

        return make


class EitherLayout:
    """A matrix in single precision, in the fastest layout for one row and for several."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self._one, self._several = for_one_row(weight, bias), packed_for_cpu(weight, bias)

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        return self._for(x)(x)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        self._for(x).into(out, x)

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return self._for(x).onto(y, x)

    def _for(self, x: Float[Tensor, "N I"]) -> PreparedMatrix:
        return self._one if x.shape[0] == 1 else self._several


def calibrated(model: Transformer, file: Path | None = None) -> IntegerPlan:
    """The plan for a model, from the times in the file. Missing times are measured and added.

    Call it with one torch thread. A file that cannot be read or written is ignored.
    """
    file = file or times_file()
    uses = uses_of(model)
    known = _read(file)
    missing = {use.shape for use in uses} - known.keys()
    if missing:
        known = {**known, **{shape: measure(shape) for shape in sorted(missing)}}
        _write(file, known)
    return choose(uses, known)


def uses_of(model: Transformer) -> list[Use]:
    """The matrices that may be rounded.

    Attention of the decoder to the source is not among them: for a single sentence its products are
    computed in another order (`cache.Precomputed`), which gives other integers.
    """
    counts: dict[tuple[str, Shape], int] = {}

    def add(part: str, *weights: Tensor) -> None:
        for weight in weights:
            key = part, (weight.shape[0], weight.shape[1])
            counts[key] = counts.get(key, 0) + 1

    for part, layers in ("encoder", model.encoder.stack), ("decoder", model.decoder.stack):
        for layer in layers:
            attention, feed = layer.self_attention, layer.feed_forward
            add(part, attention.w_qkv.weight, attention.w_o.weight)
            add(part, feed.w_1.weight, feed.w_2.weight)
    for layer in model.decoder.stack:
        add("encoder", layer.source_attention.w_kv[0])
    add("projection", model.projection.weight)
    return [Use(part, shape, count) for (part, shape), count in counts.items()]


def choose(uses: Iterable[Use], times: Mapping[Shape, Times]) -> IntegerPlan:
    """The plan that is fast for batches, and never slower than single precision.

    Some matrices are faster for batches and slower for a single sentence. The gain of others may
    pay for them: those with the highest gain for batches per loss are added first, as long as the
    sum over all matrices is not negative in any workload.
    """

    def gain_per_loss(candidate: tuple[list[float], Use, dict[int, str]]) -> float:
        *_, batch = gains = candidate[0]
        return batch / -min(gains) if min(gains) < 0 else math.inf

    found: list[tuple[list[float], Use, dict[int, str]]] = []
    for use in uses:
        least = 4 if use.part == "encoder" else 1  # the shortest sentences have few tokens
        of_shape = {rows: known for rows, known in times[use.shape].items() if rows >= least}
        ways = {rows: min(known.keys() - {SINGLE}, key=known.__getitem__, default=SINGLE)
                for rows, known in of_shape.items()}  # fmt: skip
        if SINGLE not in ways.values():
            single = dict.fromkeys(ways, SINGLE)
            gains = [
                use.seconds(of_shape, rows, single) - use.seconds(of_shape, rows, ways)
                for rows in WORKLOADS.values()
            ]
            found.append((gains, use, ways))
    total = [0.0 for _ in WORKLOADS]
    chosen = set()
    for gains, use, ways in sorted(found, key=gain_per_loss, reverse=True):
        new = [a + b for a, b in zip(total, gains, strict=True)]
        if min(new) >= 0 and gains[-1] > 0:
            total = new
            chosen.add((use.part, use.shape, tuple(sorted(ways.items()))))
    return IntegerPlan(frozenset(chosen))


@torch.inference_mode()
def measure(shape: Shape) -> Times:
    """Time the product of a matrix of this shape in every exact way, on one thread."""
    n_outputs, n_inputs = min(shape[0], max(LARGEST // shape[1], 1)), shape[1]
    weight = torch.linspace(-1, 1, n_outputs * n_inputs).view(n_outputs, n_inputs)
    bias = torch.zeros(n_outputs)
    products: dict[str, PreparedMatrix] = {SINGLE: EitherLayout(weight, bias)}
    for way in filter(is_exact, WAYS):
        # An operator may still not support this shape.
        with suppress(*FAILURES):
            product = InIntegers(weight, bias, {1: way})
            product(torch.zeros(1, n_inputs))
            products[way] = product
    times = {}
    for rows in sorted(ROWS, reverse=True):
        x = torch.linspace(-1, 1, rows * n_inputs).view(rows, n_inputs)
        suited = {
            name: product
            for name, product in products.items()
            if name == SINGLE or rows <= WAYS[name].most_rows
        }
        times[rows] = found = _seconds(suited, x)
        for way in found.keys() - {SINGLE}:
            if found[way] > HOPELESS * found[SINGLE]:
                del products[way]
    return times


def _seconds(products: Mapping[str, PreparedMatrix], x: Tensor) -> dict[str, float]:
    """The thread's CPU time, in turn; the second shortest, because the first call warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in products}
    for _ in range(REPETITIONS):
        for name, product in products.items():
            start = time.thread_time()
            product(x)
            seconds[name].append(time.thread_time() - start)
    return {name: sorted(values)[1] for name, values in seconds.items()}


# --- the cache -------------------------------------------------------------------------------


def times_file() -> Path:
    """The file with the measured times, in the user's cache directory."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "transept" / "products.json"


def _machine() -> list[str]:
    """Times of another machine or another torch are not used: a home directory may be shared."""
    capability = torch.backends.cpu.get_cpu_capability()
    libraries = [fastest_library(), torch.__version__]
    return [platform.node(), platform.machine(), capability, *libraries]


def _read(file: Path) -> dict[Shape, Times]:
    try:
        table = json.loads(file.read_text(encoding="utf-8"))
        if table["machine"] != _machine():
            return {}
        return {
            (int(n_outputs), int(n_inputs)): {
                rows: {_known_way(name): float(known[str(rows)][name]) for name in known[str(rows)]}
                for rows in ROWS
            }
            for n_outputs, n_inputs, known in table["seconds"]
        }
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _known_way(name: str) -> str:
    """The name itself, unless only another version of transept has this way."""
    if name != SINGLE and name not in WAYS:
        raise LookupError(name)
    return name


def _write(file: Path, times: Mapping[Shape, Times]) -> None:
    table = {"machine": _machine(), "seconds": [[*shape, known] for shape, known in times.items()]}
    with suppress(OSError):  # a read-only home directory: measure again next time
        make_directory(file.parent)
        write_json(file, table)
