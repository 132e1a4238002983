"""Corpora: from raw text in various formats to memory-mapped ids and batches."""
