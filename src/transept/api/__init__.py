"""A trained model, ready to use: `transept.load(path).translate([...])`.

In reading order: `config` (what can be asked for), `texts` (taken apart into sentences and put
together again), `networks` (scores and aligned words of given pairs), `attention` (where each head
looks), `transducer` (texts in, texts out), `parses` and `parser` (sentences in, trees out),
`models` (loaded, or written again with smaller weights), `card` (what one says of itself) and
`perplexity` (of given translations).
"""
