"""The composition root: configs become built objects here, by plain calls, and are run.

In reading order: `corpora` (what is learnt from), `update` (network, optimizer, loss), `feeding`
(batches), `run` (the directory, restoring and saving), `training` (all of it together);
`averaging` and `description` work on what a run has left.
"""

from transept.assembly.averaging import average_run, write_average
from transept.assembly.description import describe
from transept.assembly.training import train
from transept.assembly.update import build_update, slow_because

__all__ = ["average_run", "build_update", "describe", "slow_because", "train", "write_average"]
