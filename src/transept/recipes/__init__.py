"""A recipe is a whole experiment as one committed file: text, vocabulary, training, scores.

`recipe` is the file; `run` is a recipe in the directory where it is worked out. `work` is the half
of that directory which demos have too, and `claim` keeps another recipe out of it. `pipeline` does
one stage after another, `stages` has each of them, `watchers` show their progress; `ranks` lets
several processes train together; `records` is
what a stage writes down, with `cost` and `curve` of the training; `deadline` stops training when
the command must end. `preview` tells what would be done, `sharing` takes what another recipe
prepared, `comparing` compares two recipes, `pages` and `figure` make the report, `shipping` a model
small enough for a package.
"""
