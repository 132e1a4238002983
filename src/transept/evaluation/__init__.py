"""Strings in, numbers out: no torch.

In reading order: `scores` (what a result says), `bleu` (BLEU, whatever the tokens, and how much of
it is chance), `conventions` (which tokens, and what to call the result), `reading` (files, and
input that looks wrong) and `report` (everything at once). `evalb` and `parse_report` are about
trees.
"""
