"""Devices, processes and files, and their failures.

Computing: `device` (the device and its precision), `products` (the fastest library for matrices
on this CPU), `seed` (random numbers derived from keys) and
`determinism` (sums in a fixed order).

Files and signals: `storage` (atomic writes), `lock` (one process per directory) and `interrupt`
(signals that request a stop).

Several processes: `distributed` (the ranks as one world), built on `meeting` (how ranks find each
other) and `watch` (detecting ranks that hang); `parts` (bulk work divided among ranks) and
`workers` (a process pool).
"""
