"""What a GPU draws while it works, where nvidia-smi tells."""

import shutil
import subprocess
import threading
import time
from typing import Self

import torch

PROGRAM = "nvidia-smi"
QUERY = ("--query-gpu=power.draw", "--format=csv,noheader,nounits")
SECONDS = "2"
"""Between two measurements."""


class PowerMeter:
    """Within it, a GPU's power is measured every two seconds. Of a CPU nothing is measured."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._watts: list[float] = []
        self._process: subprocess.Popen[str] | None = None
        self._begin = self._end = 0.0

    @property
    def watts(self) -> float | None:
        """Mean power; None where none was measured."""
        return sum(self._watts) / len(self._watts) if self._watts else None

    @property
    def joules(self) -> float | None:
        """Mean power times the time; None where no power was measured."""
        return None if self.watts is None else self.watts * (self._end - self._begin)

    def __enter__(self) -> Self:
        self._begin = time.monotonic()
        if self._device.type == "cuda" and shutil.which(PROGRAM) is not None:
            # By its UUID: nvidia-smi numbers all GPUs, and torch only those that it may use.
            uuid = torch.cuda.get_device_properties(self._device).uuid
            words = [PROGRAM, f"--id=GPU-{uuid}", *QUERY, "-l", SECONDS]
            silent = subprocess.DEVNULL
            self._process = subprocess.Popen(
                words, stdout=subprocess.PIPE, stderr=silent, text=True
            )
            threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end = time.monotonic()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                try:
                    self._watts.append(float(line))
                except ValueError:  # a GPU that does not tell says so in words
                    return
