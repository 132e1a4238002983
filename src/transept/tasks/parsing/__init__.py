"""English constituency parsing as translation into linearised trees (section 6.3).

In reading order: `linearisation` (trees as sequences, and back), `leaves` (what stands for words
in them), `repair` (sequences that are no trees), `tags` (what XX left out), `pairs` (treebanks as
parallel text), `vocabulary` (one id a symbol), `bounds` (which symbols may come next, in plain
Python), `constraint` (the same for a search, in torch) and `treebank` (trees for
`data.preparation`).
"""
