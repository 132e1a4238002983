"""Inference in PyTorch: the encoder and decoder of `transept.model`, faster on a CPU.

In reading order: `engine` (batches and the search), `encoding` (the encoder), `incremental` (the
decoder, one token at a time) and `operations` (what both compute alike). The decoder uses `cache`
(keys and values of the output so far), `source` (attention to the source, which never changes) and
`ranking` (the likeliest tokens). `prepared` holds the weights, laid out for these by `matrices`.
"""
