"""The composition root: builds the objects that a config describes, and runs them.

In reading order: `corpora` (the training corpora and their batches), `run` (the run directory,
saving and restoring), `quality` (translation of the development set), `training` (model, optimizer,
loss and the training itself), `outputs` (averages and descriptions of a run).
"""

from transept.assembly.outputs import average_run, describe, write_average
from transept.assembly.training import build_update, fused_obstacles, train

__all__ = ["average_run", "build_update", "describe", "fused_obstacles", "train", "write_average"]
