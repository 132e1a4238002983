"""Text in, ids out, and back without loss: no torch.

In reading order: `files` (lines of files, compressed or not), `tokenizer` (the vocabulary, and what
makes every string come back as it went in), `training` (how one is learnt), `symbols`
(a vocabulary of whole symbols), `trees` (Penn-style brackets), `abbreviations` (words that keep
their full stop), `moses` (words and punctuation, for scores that count them), `sentences` (where
they end) and `cutting` (what to do with one too long).
"""
