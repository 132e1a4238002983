"""Section 6.1: finding a good output, for anything that gives probabilities step by step.

In reading order: `config` (what can be set), `length` (the penalty), `step` (what a search asks of
a model), `hypothesis` (what it returns), `greedy`, `beam`, `sampling`, `stream` (an output as it
comes into being) and `shortlist` (the tokens that a source can lead to). Nothing here knows the
Transformer.
"""
