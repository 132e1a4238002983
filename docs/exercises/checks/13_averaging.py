"""Check of exercise 13."""

import tempfile
from pathlib import Path

import torch
from comparing import close, must

from transept.checkpoint import WEIGHTS, Bundle, average, write_directory


def check(student):
    """Checkpoint i has a one in place i of `w`, so the result shows the weight of each."""
    torch.manual_seed(1)
    checkpoints = [{"w": one, "b": torch.randn(2, 3)} for one in torch.eye(4)]
    before = [{name: weight.clone() for name, weight in one.items()} for one in checkpoints]
    found = student.average(checkpoints)
    must(isinstance(found, dict), f"the result is of type {type(found).__name__}, not a dictionary")
    must(found.keys() == {"w", "b"}, f"the result has the weights {sorted(found)}, not ['b', 'w']")
    for number, (one, old) in enumerate(zip(checkpoints, before, strict=True)):
        unchanged = all(torch.equal(one[name], old[name]) for name in old)
        must(unchanged, f"checkpoint {number} was changed: do not add to its tensors in place")
    shares = ", ".join(f"{share:.3g}" for share in found["w"].tolist())
    must(
        torch.allclose(found["w"], torch.full((4,), 0.25)),
        f"the four checkpoints count {shares}, not 0.25 each",
    )
    with tempfile.TemporaryDirectory() as folder:
        bundles = []
        for number, weights in enumerate(checkpoints):
            path = Path(folder) / str(number)
            write_directory(path, tensors={WEIGHTS: weights}, texts={}, about={"step": number})
            bundles.append(Bundle.open(path))
        for name, weight in average(bundles).items():
            close(found[name], weight, f"the mean of {name!r}")
