"""Search for outputs (section 6.1), with any model that predicts one token at a time.

In reading order: `config` (options), `step` (the interface between search and model), `greedy` (one
row per sentence, and sampling), `beam` (beam search, W rows per sentence, and streaming), `engine`
(the interface of all engines), `terms` (beam search for outputs with required token sequences) and
`record` (every candidate of a beam search).
Nothing here depends on the Transformer.
"""
