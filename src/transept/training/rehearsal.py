"""The largest batch, tried before the first step: memory runs out at second 1, not at hour 3."""

from collections.abc import Callable, Sequence

import torch

from transept.errors import ConfigError, Problem
from transept.training.batches import MicroBatch
from transept.training.sharding import own_part
from transept.training.update import Update


def rehearse(
    update: Update, batch: MicroBatch, smaller: Callable[[int], MicroBatch], divisors: Sequence[int]
) -> None:
    """Run forward, backward and Adam's allocation on `batch`, and leave everything as it was.

    Args:
        update: What will be trained.
        batch: A batch as large as any that will come.
        smaller: A batch of a given fraction of that: `smaller(4)` is a quarter.
        divisors: The fractions to try when it does not fit, to tell which one would.
    """
    if _fits_all(update, batch):
        return
    fitting = next((n for n in divisors if _fits_all(update, smaller(n))), None)
    if fitting is None:
        cure = "not even the smallest one does: use a smaller model"
    else:
        cure = f"1/{fitting} of it does: make this {fitting} times as large"
    tokens = len(batch.target.ids)
    problem = f"a micro-batch of {tokens:,} target places does not fit into memory; {cure}"
    raise ConfigError([Problem("batch.micro_batches", problem)])


def without_moments(adam: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    """Those of this rank's parameters whose moments are not there yet."""
    own = own_part(adam)
    return [p for group in own.param_groups for p in group["params"] if p not in own.state]


def _fits_all(update: Update, batch: MicroBatch) -> bool:
    """Whether it fits on every rank."""
    [misfit] = update.runtime.world.agree([not _fits(update, batch)])
    return not misfit


def _fits(update: Update, batch: MicroBatch) -> bool:
    # Adam's two moments are allocated at the first step: stand in for them where they are absent.
    moments = [torch.empty_like(p) for p in without_moments(update.adam) for _ in range(2)]
    try:
        update.model.train()
        update.accumulate(0, [batch], n_target_tokens=max(1, len(batch.target.ids)))
        update.runtime.synchronize()
    except (MemoryError, torch.OutOfMemoryError):
        return False
    except RuntimeError as error:
        # On a CPU torch has no error of its own for this.
        if "not enough memory" not in str(error) and "can't allocate memory" not in str(error):
            raise
        return False
    finally:
        update.clear_gradients()
        del moments
        if update.runtime.device.type == "cuda":
            torch.cuda.empty_cache()
    return True
