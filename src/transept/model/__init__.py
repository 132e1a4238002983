"""The network of section 3: torch and nothing else.

In reading order: `config`, `attention` (equation 1), `positions` (section 3.5), `layers`
(equation 2, residuals and norms, embeddings), `packing` (how sentences lie in a batch) and
`transformer` (the two stacks, and the initialisation of every weight).
"""
