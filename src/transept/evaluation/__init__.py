"""Evaluation of translations and parse trees. Does not import torch.

In reading order: `scores` (results), `bleu` (BLEU of any tokens, with bootstrap resampling),
`conventions` (tokenization and signatures), `reading` (input files and common mistakes) and
`report` (all scores together). `evalb` and `parse_report` evaluate trees.
"""
