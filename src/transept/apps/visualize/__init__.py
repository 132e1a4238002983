"""Attention, drawn.

In reading order: `colours`, `pictures` (what a picture is made of), `lines` (two rows of words
with lines between), `heat_maps`, `figures` (the paper's Figures 3 to 5 and a grid of heat maps put
together from these), then what writes them: `svg`, `html` (a page to explore) and `terminal`.
`command` is `transept visualize`.
"""
