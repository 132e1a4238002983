"""Shape annotations become assertions in the tests: see `transept.shapes`."""

import torch
from jaxtyping import install_import_hook

CHECKED = [
    "transept.model",
    "transept.training",
    "transept.decoding",
    "transept.tasks.parsing.constraint",
]
install_import_hook(CHECKED, "beartype.beartype")
# Matrices here are tiny: a second thread costs more than it brings.
torch.set_num_threads(1)
