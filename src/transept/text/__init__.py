"""Text to ids and back without loss. Nothing here imports torch.

In reading order: `files` (lines of files, compressed or not), `tokenizer` (the lossless subword
vocabulary), `training` (how it is trained), `symbols` (a vocabulary of whole symbols), `trees`
(Penn-style brackets), `abbreviations` (words with a full stop), `moses` (tokenization for scores
that assume it), `sentences` (sentence splitting) and `cutting` (sentences that are too long).
"""
