"""Shape annotations become assertions in the tests: see `transept.shapes`."""

import os

import torch
from jaxtyping import install_import_hook

CHECKED = [
    "transept.model",
    "transept.training",
    "transept.decoding",
    "transept.tasks.parsing.constraint",
]
install_import_hook(CHECKED, "beartype.beartype")
# Without a GPU, kernels run in Triton's interpreter. That must be said before any of them is
# imported, as a test that resolves names of the package may do.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")
# Matrices here are tiny: a second thread costs more than it brings. `make test-portable` uses two.
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))
