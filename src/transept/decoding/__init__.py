"""Section 6.1: finding a good output, for anything that gives probabilities step by step.

In reading order: `config` (options), `length` (the penalty), `step` (what a search asks of a
model), `hypothesis` (what it returns), `greedy`, `beam`, `sampling`, `stream` (an output while it
grows) and `engine` (what every engine offers, whatever it searches with). Nothing here knows the
Transformer.
"""
