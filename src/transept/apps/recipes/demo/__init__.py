"""The first minutes: from text to a translator, in stages that are not repeated.

In reading order: `plan` (what a demo is about), `texts` (the sentences: built-in, or custom
files), `settings` (the network and how it is trained), `stages` (one after the other, each
with its place on disk), `results` (what came of it), `command` and `view` (what is printed).
"""
