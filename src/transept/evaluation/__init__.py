"""Strings in, numbers out: no torch.

In reading order: `scores` (what a result says), `bleu` (BLEU, whatever the tokens), `conventions`
(which tokens, and what to call the result), `significance` (how much of it is chance),
`suspicions` (input that looks wrong), `reading` (files) and `report` (everything at once). `evalb`
is about trees.
"""
