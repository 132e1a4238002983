"""Triton kernels for operations that are slow on a GPU as separate PyTorch operations.

Each is a function on flat tensors, independent of the network. Parity tests compare it with plain
PyTorch. The modules are imported only if a GPU (or Triton's interpreter) is used.

With a forward and a backward pass: `attention`, `pointwise` (embedding, residual connection, ReLU,
dropout) and `logits` (cross-entropy). For decoding one token at a time: `attention_step`, and
`beams`, which takes the likeliest tokens from `logits`.
"""

LONGEST = 1 << 12
"""All sentences are shorter than this: (sentence, position) must fit into 32 bits."""
