"""Use trained models: `transept.load(path).translate([...])`.

In reading order: `config` (options), `texts` (texts are split into sentences, and outputs are
written and joined), `terms` (terms of a glossary as tokens), `documents` (texts with markup),
`files` (files of documents), `guard` (second attempts at translations that are not usable),
`networks` (log-probabilities and word alignments of given pairs), `segmentation` (the likeliest
subwords of a given text), `scoring` (scores of given translations), `attention` (attention
weights), `feeding` (sentences that arrive during a translation), `transducer` (translation),
`words` (the words of a translation, and other choices), `search_tree` (the hypotheses of a beam
search), `parses` and `parser` (parsing), `models` (loading and quantizing), `card` (model cards)
and `perplexity` (of given translations).
"""
