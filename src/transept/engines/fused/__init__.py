"""Beam search with all of it on a GPU: a step is one CUDA graph, which does not wait for the host.

Sentences are decoded in slots. Where a sentence is done, the next one takes its slot.

In reading order: `engine` (which sentence is in which slot, and which ones wait), `workspace` (the
memory of all slots, and a step for all of them) and `network` (encoder and decoder). The kernels
are `kernels.attention_step`, `kernels.logits` and `kernels.beams`.
"""
