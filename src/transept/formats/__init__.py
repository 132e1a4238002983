"""The model formats of other toolkits (ring 2).

In reading order: `files` (reads a file), `foreign` (what all readers return, and the model
directory made of it), `huggingface_reader` and `huggingface_writer` (MarianMT), `marian_reader`
(Marian's own files), `ctranslate2_reader` and `ctranslate2_writer`.
"""
