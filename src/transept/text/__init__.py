"""Text in, ids out, and back without loss: no torch.

In reading order: `files` (lines of files, compressed or not), `escaping` (what makes every string
come back as it went in), `tokenizer` (the vocabulary) and `training` (how one is learnt).
"""
