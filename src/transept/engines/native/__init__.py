"""Inference in PyTorch: the encoder and decoder of `transept.model`, faster on a CPU.

In reading order: `engine` (batches, and a search for each), `network` (the encoder, the decoder one
token at a time, the likeliest tokens), `cache` (keys and values of the output so far and of the
source) and `weights` (laid out for fast products).
"""
