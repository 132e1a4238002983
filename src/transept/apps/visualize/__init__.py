"""Drawings of attention weights.

In reading order: `panels` (two rows of words connected by lines, and heat maps), `figures` (the
paper's Figures 3 to 5 and a grid of heat maps), `html` (an interactive page) and `terminal`.
`apps/svg.py` writes the figures. `command` is `transept visualize`.
"""
