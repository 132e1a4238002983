"""A fast training step for a GPU: manual forward and backward passes with custom kernels.

`Transformer` with autograd is the reference. This package computes the same with less memory
traffic, for the paper's network on a GPU. Parity tests compare the two.
"""
