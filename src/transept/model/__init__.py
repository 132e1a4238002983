"""The Transformer of section 3 of the paper (Vaswani et al., 2017, arXiv:1706.03762).

In reading order: `config`, `attention` (scaled dot-product and multi-head attention), `positions`
(positional encoding), `layers` (feed-forward network, residual connection, layer normalization,
embedding matrix), `packing` (how the sentences of a batch share one flat axis) and `transformer`
(encoder and decoder stacks, weight initialization).

These six files are the reference implementation. `transept.engines` computes the same results
faster, and `tests/parity` compares each engine with the reference. An engine must implement every
change made here, or reject it (`attention.require_equation_1`, and the obstacles in
`engines.choice`).
"""
