"""English constituency parsing as translation into linearised trees (section 6.3).

In reading order: `linearisation` (trees as sequences, and back), `leaves` (symbols for words),
`repair` (malformed sequences), `tags` (the tags that XX omits), `pairs` (treebanks as parallel
text), `vocabulary` (one id per symbol), `bounds` (which symbols may come next, in plain Python),
`constraint` (the same for beam search, in torch) and `treebank` (trees for `data.preparation`).
"""
