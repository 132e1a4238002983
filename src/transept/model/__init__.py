"""The network of section 3: torch and nothing else.

The network. In reading order: `config`, `attention` (equation 1), `positions` (section 3.5),
`layers` (equation 2, residuals and norms, embeddings), `packing` (how sentences lie in a batch) and
`transformer` (the two stacks, and the initialisation of every weight).

The network, decoding: the same results, sooner. `matrices` (how one lies in memory), `prepared`
(the weights in these), `encoding` (the encoder with them), `incremental` (the decoder one token at
a time), which stands on `cache` (keys and values of the outputs so far), `source` (attention to
what never changes) and `ranking` (the few likeliest tokens).
"""
