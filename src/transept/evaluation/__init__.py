"""Strings in, numbers out: no torch.

In reading order: `scores` (what a result says), `bleu` (BLEU, whatever the tokens), `conventions`
(which tokens, and what to call the result), `significance` (how much of it is chance),
`perplexity` (what a model expected), `suspicions` (input that looks wrong), `reading` (files),
`report` (everything at once) and `grid` (settings chosen by a score). `evalb` is about trees.
"""
