"""Beam search entirely on a GPU: a step is one CUDA graph, which does not wait for the host.

Sentences are decoded in slots. When a sentence is done, the next one takes its slot.

In reading order: `engine` (slots and queue of sentences), `workspace` (the memory of all slots, and
a step for all of them) and `network` (encoder and decoder). The kernels are
`kernels.attention_step`, `kernels.logits` and `kernels.beams`.
"""
