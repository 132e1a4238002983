"""Kernels in Triton for what is slow on a GPU as separate steps of PyTorch.

Each is a function on flat tensors that knows no network, beside the line of PyTorch that it must
agree with. Nothing here is imported unless a GPU (or Triton's interpreter) is to be used.
"""
