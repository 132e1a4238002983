"""Beam search with all of it on a GPU: a step is one CUDA graph, which does not wait for the host.

Sentences are decoded in slots. Where a sentence is done, the next one takes its slot.

In reading order: `search` (which sentence is in which slot), `admission` (sentences that wait for a
slot), `workspace` (the memory of all slots, and a step for all of them), `decoder` and `encoder`
(the network), `weights`, `sizes`, `engine`, and `fit` (which networks it supports). The kernels are
`kernels.likeliest`, `kernels.beams` and `kernels.attention_step`.
"""
