"""`transept average`: the mean of the last checkpoints."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.app import Flag, complain
from transept.runtime.interrupt import import_torch


def average(
    run: Path,
    /,
    *,
    last: int = 5,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    force: Flag = False,
) -> None:
    """Average a run's last checkpoints into one model (section 6.1).

    Args:
        run: The directory of a run.
        last: How many checkpoints: 5 for base and 20 for big in the paper. Only those count that
            were saved at regular intervals or at the end of the run, not those that were saved
            for the best validation, at a signal or, if only `checkpoint.every_steps` is set, at
            the end of --minutes.
        output: The new model's directory. By default RUN/average-N.
        force: Replace what the output directory holds.
    """
    import_torch()
    from transept.assembly import average_run
    from transept.checkpoint import CHECKPOINTS, Checkpoints

    directory, steps = average_run(run, last=last, output=output, force=force)
    listed = ", ".join(f"{step:,}" for step in steps)
    sys.stdout.write(f"averaged steps {listed} into {directory}\n")
    newest = Checkpoints(run / CHECKPOINTS).steps()[-1]
    if newest not in steps:
        complain(f"step {newest:,} is left out: it was not saved at a regular interval")
