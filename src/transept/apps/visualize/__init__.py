"""Attention, drawn.

In reading order: `panels` (two rows of words with lines between, and heat maps), `figures` (the
paper's Figures 3 to 5 and a grid of heat maps put together from these), `html` (a page to explore)
and `terminal`. `apps/svg.py` writes the figures. `command` is `transept visualize`.
"""
