"""What turns source ids into outputs: our own networks, or another engine with the same weights.

In reading order: `engine` (what an engine is), `native` (our networks and our search), `fused`
(the same with all of it on a GPU), `ctranslate2` (the weights in CTranslate2), `choice` (which one
is used).
"""
