"""Use trained models: `transept.load(path).translate([...])`.

In reading order: `config` (options), `texts` (texts are split into sentences and joined again),
`terms` (terms of a glossary as tokens), `documents` (texts with markup), `guard` (second attempts
at translations that are not usable), `networks` (scores and word alignments of given pairs),
`segmentation` (the likeliest subwords of a given text), `attention` (attention weights),
`transducer` (translation), `parses` and `parser` (parsing), `models` (loading and quantizing),
`card` (model cards) and `perplexity` (of given translations).
"""
