"""Constituency parsing from the command line (section 6.3).

In reading order: `command` (`transept parse`), `drawing` (trees as indented text and SVG) and
`evalb` (`transept evalb`: F1 against a treebank).
"""
