"""Corpora: from raw text, whatever its format, to memory-mapped ids and batches of them."""
