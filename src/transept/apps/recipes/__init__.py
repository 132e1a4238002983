"""A recipe is a whole experiment in one TOML file: text, vocabulary, training, scores.

In reading order: `recipe` (the file), `sentences` (the text of a recipe that writes its own), `run`
(a recipe in its work directory), `records` (what a stage stores), `stage` (what a stage is, and the
rule by which it is done), `prepare`, `train` and `pipeline` (the stages), `command` (`transept
recipe`), `demo` (`transept demo`: the recipe of that name, presented), `view` (what both print).
"""
