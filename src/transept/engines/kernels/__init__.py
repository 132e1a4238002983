"""Kernels in Triton for what is slow on a GPU as separate steps of PyTorch.

Each is a function on flat tensors that knows no network; parity tests hold it against plain
PyTorch. None of the modules is imported unless a GPU (or Triton's interpreter) is to be used.

With a forward and a backward pass: `attention`, `pointwise` (embedding, residual connection, ReLU,
dropout) and `logits` (cross-entropy). For decoding a token at a time: `attention_step`, and
`beams`, which takes the likeliest tokens from `logits`.
"""

LONGEST = 1 << 12
"""No sentence has so many tokens: places are numbered by (sentence, position) in 32 bits."""
