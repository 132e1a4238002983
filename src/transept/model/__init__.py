"""The network of section 3: torch and nothing else.

In reading order: `config`, `attention` (equation 1), `positions` (section 3.5), `layers` (equation
2, residuals and norms, embeddings), `packing` (how sentences lie in a batch) and `transformer` (the
two stacks, and the initialisation of every weight). These six say what is computed.

The others compute the same sooner, for decoding: `matrices` (how one lies in memory), `prepared`
(the weights in these), `encoding` (the encoder with them), `incremental` (the decoder one token at
a time), which stands on `cache` (keys and values of the outputs so far), `source` (attention to
what never changes) and `ranking` (the few likeliest tokens).

So equations (1) and (2) are written again in these, and for a GPU in `transept.kernels`,
`transept.training.fused` and `transept.api.engines.fused`. Who changes what the six compute must
change these too, or let them refuse it (`attention.require_equation_1`; `obstacles()` beside the
forms for a GPU). `tests/parity` holds them to the six.
"""
