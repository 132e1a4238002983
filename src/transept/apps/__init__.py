"""Ring 3: applications of the package, each of which can be removed with its commands.

In reading order: `parse` (constituency parsing from the command line), `recipes` (experiments and
the demo), `serve` (the translation server) and `visualize` (attention figures). `svg` draws what
`parse` and `visualize` have to show.
"""
