"""A recipe is a whole experiment as one committed file: text, vocabulary, training, scores.

`recipe` is the file; `run` is a recipe in the directory where it is worked out, which `claim` keeps
to it, and `work` the half of that directory which demos have, too. `pipeline` does one stage after
another, `stages` has each of them, `watchers` who is told; `records` is what a stage writes down,
with `cost` and `curve` of the training, and `deadline` ends a sitting in time. `preview` looks
ahead, `sharing` takes what another recipe prepared, `comparing` holds two against each other,
`pages` and `figure` make the report, `shipping` a model small enough to lie in a package.
"""
