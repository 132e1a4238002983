"""The network of section 3: torch and nothing else.

In reading order: `config`, `attention` (equation 1), `positions` (section 3.5), `layers` (equation
2, residuals and norms, embeddings), `packing` (how the sentences of a batch share one flat axis)
and `transformer` (the two stacks, and the initialization of every weight).

These six files define what is computed. `transept.engines` computes the same faster, and
`tests/parity` compares each engine with these. A change of what is computed must be made there too,
or be rejected there (`attention.require_equation_1`, and `fit.obstacles` of each GPU engine).
"""
