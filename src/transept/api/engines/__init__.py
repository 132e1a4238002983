"""Engines: each computes the network and searches for the best outputs of source sentences.

In reading order: `engine` (what an engine must do), `native` (transept's own networks and search),
`fused` (the same, with the whole search on a GPU), `ctranslate2` (the same weights in CTranslate2),
`choice` (which engine is used).
"""
