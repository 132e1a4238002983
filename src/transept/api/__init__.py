"""Use trained models: `transept.load(path).translate([...])`.

In reading order: `config` (options), `texts` (texts are split into sentences and joined again),
`networks` (scores and word alignments of given pairs), `attention` (attention weights),
`transducer` (translation), `parses` and `parser` (parsing), `models` (loading and quantizing),
`card` (model cards) and `perplexity` (of given translations).
"""
