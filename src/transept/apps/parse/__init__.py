"""`transept parse`: constituency parsing from the command line, section 6.3.

In reading order: `command`, `report` (what is printed for each sentence), `scores` (F1 against a
treebank), `drawing` (trees as text and SVG) and `treebanks` (`transept data clean`).
"""
