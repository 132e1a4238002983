"""From a corpus to batches, section 5.1.

In reading order: `mixture` (several corpora as one), `shuffling`, `window` (how much of an epoch is
planned at a time), `tiles` (packing), `packed` and `by_length` (the two layouts), `plan` (which
pairs make which batch), `fill` (how full they are), `collation` and `batches` (their ids), `feed`
and `loader` (read ahead, in order). `memory` is a corpus that was never on a disk.
"""
