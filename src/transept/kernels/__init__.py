"""Kernels in Triton for what is slow on a GPU as separate steps of PyTorch.

Each is a function on flat tensors that knows no network; parity tests hold it against plain
PyTorch. None of the modules is imported unless a GPU (or Triton's interpreter) is to be used.

Forward and backward: `embedding`, `attention`, `residual`, `relu` and `cross_entropy`, which stand
on `chance` (dropout), `sums` and `powers`. A token at a time: `attention_step`, and `beams`, which
stands on `likeliest` (tokens) and `slots` (memory).
"""

LONGEST = 1 << 12
"""No sentence has so many tokens: places are numbered by (sentence, position) in 32 bits."""
