"""Recipes: complete experiments in one TOML file, from text to scores.

In reading order: `recipe` (the file), `sentences` (bundled or custom sentences), `phrases` (times
of day), `run` (a recipe in its work directory), `records` (the records of stages), `stage` (the
base class of stages), `texts` (the files of a recipe), `translators` (models that write text),
`reading` (what they read), `filtering` (which of their translations are dropped), `chunks` (their
text on disk), `translate`, `prepare`, `train`, `package` and `pipeline` (the stages), `table`
(means over seeds, beside Table 3), `sweep` (a recipe with several settings and seeds), `command`
(`transept recipe`), `demo` (`transept demo`), `view` (the output of both commands).
"""
