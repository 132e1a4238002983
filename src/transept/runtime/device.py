"""The device to compute on, its precision and its peak speed."""

import os
import platform
import statistics
import time
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import torch

from transept.errors import ConfigError, Problem
from transept.runtime.distributed import ALONE, World
from transept.runtime.products import products_in

Precision = Literal["fp32", "bf16"]


@dataclass(frozen=True, slots=True)
class Runtime:
    """Device, precision and ranks of a computation. Weights are kept in single precision."""

    device: torch.device
    precision: Precision
    world: World = field(default=ALONE, compare=False)

    @classmethod
    def choose(
        cls, device: str = "auto", precision: str = "auto", world: World = ALONE
    ) -> "Runtime":
        """Choose a GPU in bfloat16 if there is one, otherwise the CPU in single precision.

        With several ranks per machine, each rank uses the GPU with its local rank as index.
        """
        chosen = _own_device(_named_device(device), world)
        if precision == "auto":
            precision = "bf16" if chosen.type == "cuda" else "fp32"
        return cls(chosen, "bf16" if precision == "bf16" else "fp32", world)

    @property
    def dtype(self) -> torch.dtype:
        """The type in which matrices are multiplied."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    def synchronize(self) -> None:
        """Wait until the device has finished all queued work."""
        _synchronize(self.device)

    def matrix_peak(self) -> float:
        """The FLOP/s of a large matrix multiplication, to compare a step with. Measured once."""
        return _matrix_peak(self.device, self.dtype)


@cache
def _matrix_peak(device: torch.device, dtype: torch.dtype) -> float:
    on_gpu = device.type == "cuda"
    n, tries = (8192, 6) if on_gpu else (768, 20)
    a = torch.randn(n, n, device=device, dtype=dtype)
    rates = []
    for _ in range(tries):
        _synchronize(device)
        start = time.perf_counter()
        with products_in("fp32", device):
            torch.mm(a, a)
        _synchronize(device)
        rates.append(2 * n**3 / (time.perf_counter() - start))
    # A CPU may be shared with other work, so the best try shows its peak.
    return statistics.median(rates[1:]) if on_gpu else max(rates)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _named_device(name: str) -> torch.device:
    """Return the device of this name; an error lists the usable names."""
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if n_gpus else "cpu")
    usable = ["auto", "cpu", *(["cuda"] if n_gpus else []), *(f"cuda:{i}" for i in range(n_gpus))]
    if name not in usable:
        seen = f"torch {torch.__version__} sees {n_gpus or 'no'} GPU{'s' if n_gpus > 1 else ''}"
        choice = f"{', '.join(usable[:-1])} or {usable[-1]}"
        problem = f"{name!r} cannot be used: {seen}; choose {choice}"
        raise ConfigError([Problem("device", problem)])
    return torch.device(name)


def _own_device(device: torch.device, world: World) -> torch.device:
    """Return this rank's own device on its machine."""
    if device.type != "cuda" or not world.joined:
        return device
    n_gpus = torch.cuda.device_count()
    if world.local_size > n_gpus:
        problem = f"{world.local_size} ranks cannot share {n_gpus} GPUs"
        raise ConfigError([Problem("device", f"{problem}: --nproc-per-node {n_gpus}")])
    if device.index is not None and world.local_size > 1:
        problem = f"'{device}' is a single GPU for {world.local_size} ranks; use 'cuda'"
        raise ConfigError([Problem("device", problem)])
    own = torch.device("cuda", world.local_rank if device.index is None else device.index)
    torch.cuda.set_device(own)
    return own


def take_own_gpu() -> None:
    """Make "cuda" refer to this process's own GPU, by its local rank under torchrun."""
    if torch.cuda.is_available() and "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())


def describe_devices() -> list[str]:
    """Describe each device in one line, the CPU first."""
    cpu = f"cpu: {platform.machine()}, {torch.get_num_threads()} threads"
    gpus = [
        f"cuda:{index}: {torch.cuda.get_device_name(index)}"
        for index in range(torch.cuda.device_count())
    ]
    return [cpu, *gpus]
