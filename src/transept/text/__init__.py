"""Text to ids and back without loss. Nothing here imports torch.

In reading order: `files` (lines of files, compressed or not), `tokenizer` (the lossless subword
vocabulary), `training` (how it is trained), `imported` (vocabularies of other toolkits), `symbols`
(a vocabulary of whole symbols), `trees` (Penn-style brackets), `abbreviations` (words with a full
stop), `moses` (tokenization for scores that assume it), `sentences` (sentence splitting), `cutting`
(sentences that are too long) and `languages` (their codes and names).
"""
