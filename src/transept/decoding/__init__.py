"""Section 6.1: finding a good output, for anything that gives probabilities step by step.

In reading order: `config` (options), `step` (what a search asks of a model and what it returns),
`greedy` (one row per sentence, and sampling), `beam` (W rows per sentence, and a stream of the
output while it grows) and `engine` (what every engine offers, whatever it searches with). Nothing
here knows the Transformer.
"""
