"""The composition root: configs become built objects here, by plain calls, and are run.

In reading order: `corpora` (what is learnt from, and its batches), `run` (the directory, restoring
and saving), `training` (network, optimizer and loss, and all of it together), `outputs` (averages
and descriptions of what a run has left).
"""

from transept.assembly.outputs import average_run, describe, write_average
from transept.assembly.training import build_update, fused_obstacles, train

__all__ = ["average_run", "build_update", "describe", "fused_obstacles", "train", "write_average"]
