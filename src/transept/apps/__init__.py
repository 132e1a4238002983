"""Ring 3: applications. Each can be removed together with its commands.

In reading order: `convert` (import and export), `parse` (constituency parsing from the command
line), `recipes` (experiments and the demo), `serve` (the translation server) and `visualize`
(attention figures). `svg` writes the drawings of `parse` and `visualize`. The
ES modules in the folder explorer draw attention on the pages of `serve` and `visualize`.
"""
