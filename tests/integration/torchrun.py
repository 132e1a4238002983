"""`torchrun … -m transept train`, as a user starts it, and what can be done to its processes."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.integration.workshop import Workshop

from transept.training.observers import read_metrics


@dataclass
class Job:
    """A torchrun that was started, and the run that it works on."""

    process: subprocess.Popen[str]
    output: Path
    logs: Path

    @property
    def step(self) -> int:
        """The last step in the log."""
        lines = read_metrics(self.output / "metrics.jsonl")
        return max((line.get("step", 0) for line in lines), default=0)

    def wait_for_step(self, step: int, seconds: float = 300) -> None:
        """Wait until the run has reached a step and is running."""
        deadline = time.monotonic() + seconds
        while self.step < step:
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < deadline, f"not at step {step} within {seconds} s"
            time.sleep(0.02)

    def workers(self) -> list[int]:
        """The processes of the ranks, in their order."""
        return sorted(_children(self.process.pid))

    def signal(self, rank: int, number: signal.Signals) -> None:
        os.kill(self.workers()[rank], number)

    def end(self, seconds: float = 300) -> str:
        """Wait for the end and return the console output."""
        _, errors = self.process.communicate(timeout=seconds)
        return errors

    def kill(self) -> None:
        """Kill the agent and all ranks, as if the machine were lost."""
        for process in [*self.workers(), self.process.pid]:
            os.kill(process, signal.SIGKILL)
        self.process.communicate()

    def causes(self) -> dict[str, str]:
        """The content of torchrun's error files, by attempt and rank."""
        return {
            "/".join(path.parts[-3:-1]): json.loads(path.read_text())["message"]["message"]
            for path in sorted(self.logs.rglob("error.json"))
        }


def start(
    workshop: Workshop, output: Path, *overrides: str, ranks: int = 2, options: tuple[str, ...] = ()
) -> Job:
    """Start `transept train` with torchrun on a number of ranks."""
    logs = output.with_name(f"{output.name}-logs")
    alone = "--rdzv-backend" not in options
    # With elastic nodes, torchrun's shared store does not give a new node the rendezvous address.
    shared = {} if alone else {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    words = ["--nproc-per-node", str(ranks), "--log-dir", str(logs), *options]
    if alone:
        words.insert(0, "--standalone")
    train = ["-m", "transept", "train", str(workshop.config), "batch.micro_batches=4", *overrides]
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *words, *train, "--output", str(output)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | shared,
    )
    return Job(process, output, logs)


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found
