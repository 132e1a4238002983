"""From a corpus to batches, section 5.1.

In reading order: `mixture` (several corpora as one), `tiles` (packing), `packed` and `by_length`
(the two layouts), `plan` (which pairs make which batch), `collation` and `batches` (their ids),
`feed` and `loader` (read ahead, in order).
"""
