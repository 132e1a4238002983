"""A recipe is a whole experiment in one TOML file: text, vocabulary, training, scores.

`recipe` is the file, and `run` is a recipe in its work directory. `work` is the part of that
directory that demos have too, and `claim` rejects other recipes in it. `pipeline` runs one stage
after another, and `stages` has each of them. `command` and `view` are `transept recipe`, and `demo`
is `transept demo`. `records` is what a stage stores. `ranks` lets several
processes train together.
"""
