"""Search with all of it on a GPU: one CUDA graph a step, and no waiting for the host.

In reading order: `search` (who sits in which slot), `door` (who waits), `workspace` (a step for all
slots), `decoder` and `encoder` (the network), `weights`, `sizes`, `engine`, and `fit` (which
networks it knows). The kernels are `kernels.likeliest`, `kernels.beams` and
`kernels.attention_step`.
"""
