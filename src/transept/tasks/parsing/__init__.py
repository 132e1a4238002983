"""English constituency parsing as translation into linearised trees (section 6.3).

In reading order: `linearisation` (trees as sequences, and back), `repair` (sequences that are no
trees), `tags` (what XX left out), `vocabulary` (one id a symbol), `bounds` (which symbols may
come next, in plain Python), `constraint` (the same for a search, in torch), `pairs` (treebanks as
parallel text), `treebank` (the same for `data.preparation`), `baseline` (trees that branch to the
right) and `drawing` (trees for people).
"""
