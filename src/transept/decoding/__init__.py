"""Section 6.1: finding a good output, for anything that gives probabilities step by step.

In reading order: `length` (the penalty), `step` (what a search asks of a model), `greedy`,
`beam`, `sampling`. Nothing here knows the Transformer.
"""
