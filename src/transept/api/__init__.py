"""A trained model, ready to use: `transept.load(path).translate([...])`.

In reading order: `config` (what can be asked for), `results` (what comes back), `units` (texts
taken apart into what is decoded at once), `networks` (ids in, numbers out), `alignment` (which
words belong together), `attention` (where each head looks), `transducer` (texts in, texts out),
`parse_config`, `parses` and `parser` (sentences in, trees out), `models` (where models are), `card`
(what one says of itself), `perplexity` (of given translations) and `conversion` (a model directory
written again, smaller).
"""
