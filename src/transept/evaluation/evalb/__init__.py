"""Labelled bracketing by evalb's rules, and by rules that do not flatter (section 6.3).

In reading order: `parameters` (what counts, as .prm files say it), `reading` (a line as evalb sees
it), `scoring` (two lines compared), `report` (all of them) and `suspicions` (files that should not
be compared as they are). What was found by trying evalb, and
not in its documentation, is noted where it happens. Only its fixed sizes (5,000 bytes a line,
200 words or brackets a sentence, 20 quotation marks) are not followed: beyond them it reads
another sentence, or what happens to lie in memory.
"""
