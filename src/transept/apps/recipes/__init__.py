"""Recipes: complete experiments in one TOML file, from text to scores.

In reading order: `recipe` (the file), `sentences` (bundled or custom sentences), `run` (a recipe in
its work directory), `records` (the records of stages), `stage` (the base class of stages),
`prepare`, `train` and `pipeline` (the stages), `command` (`transept recipe`), `demo` (`transept
demo`), `view` (the output of both commands).
"""
