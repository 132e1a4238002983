"""The training curve of a run: the development set's −log p over steps, tokens and time."""

from pathlib import Path
from typing import Any

from transept.assembly.run import METRICS
from transept.training.observers import read_metrics

Point = dict[str, float]


def curve(run: Path) -> list[Point]:
    """A point for each validation that gave a number. Time is training's own, over all resumes."""
    points: list[Point] = []
    latest: dict[str, Any] = {"seconds": 0.0, "target_tokens": 0}
    for line in read_metrics(run / METRICS):
        if line["kind"] == "step":
            latest = line
        elif line["kind"] == "validation" and line["nll"] is not None:
            points.append(
                {
                    "step": line["step"],
                    "seconds": latest["seconds"],
                    "target_tokens": latest["target_tokens"],
                    "nll": line["nll"],
                }
            )
    return points
