"""Kernels in Triton for what is slow on a GPU as separate steps of PyTorch.

Each is a function on flat tensors that knows no network, beside the line of PyTorch that it must
agree with. None of the modules is imported unless a GPU (or Triton's interpreter) is to be used.
"""

LONGEST = 1 << 12
"""No sentence has so many tokens: places are numbered by (sentence, position) in 32 bits."""
