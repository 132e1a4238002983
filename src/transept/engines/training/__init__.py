"""The training step in its fast form: forward and backward written out, on our own kernels.

`Transformer` and autograd are the truth; this is the same arithmetic with fewer trips to memory,
for the paper's network on a GPU. Parity tests hold the two together.
"""
