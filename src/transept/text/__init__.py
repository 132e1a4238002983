"""Text to ids and back without loss. Nothing here imports torch.

In reading order: `files` (lines of files, compressed or not), `tokenizer` (the lossless subword
vocabulary), `training` (how it is trained), `sampling` (random subwords for training), `imported`
(vocabularies of other toolkits), `symbols` (a vocabulary of whole symbols), `trees` (Penn-style
brackets), `abbreviations` (words with a full stop), `moses` (tokenization for scores that assume
it), `sentences` (sentence splitting), `cutting` (sentences that are too long), `inline` (markup
that moves with words), `markup` (documents are split into sentences and markup), `plain`, `html`,
`markdown` and `markdown_inline` (kinds of markup), `numbers` (in the form of another language),
`spoken` (times of day in words), `spans` (text that is not translated), `figures` (numbers that a
translation has lost), `french` (its typography), `spelling` (German without umlauts), `surface`
(punctuation, quotation marks and capitals), `protection` (a sentence as a model reads it),
`variation` (training pairs that teach this), `glossary` (required translations of terms) and
`languages` (their codes and names).
"""
