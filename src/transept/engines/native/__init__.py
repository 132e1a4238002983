"""Inference in PyTorch: the encoder and decoder of `transept.model`, optimized for a CPU.

In reading order: `engine` (batches, and a search for each), `network` (the encoder, the decoder
with a key/value cache, the likeliest tokens), `cache` (keys and values of the output and of the
source), `weights` (memory layouts for fast products), `integers` (products in 8-bit integers) and
`calibration` (which products are faster in integers on this machine).
"""
