"""The machine, and what can go wrong with it.

To compute with: `device` (which one, in which arithmetic), `seed` (random numbers by a
key), `determinism` (sums in one order) and `power` (what a GPU draws).

Files and signals: `storage` (files that are whole or not there), `lock` (a directory to oneself)
and `interrupt` (signals that ask for an end).

Several processes: `distributed` (the ranks as one world), which stands on `meeting` (how they find
each other) and `watch` (who stands still); and `parts` (bulk work, shared out).
"""
