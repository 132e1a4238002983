"""Ring 2: fast implementations of the network of `transept.model`, each with parity tests.

In reading order: `program` (the layers, written once for all engines), `native` (inference in
PyTorch with cached keys and values), `fused` (the whole search on a GPU), `training` (the training
step on a GPU), `kernels` (Triton, for the last two), `ctranslate2` (CTranslate2 as an engine),
`onnx` (the network as ONNX graphs), `shortlist` (a restricted output vocabulary) and `choice`
(which engine runs a model). The inner ring finds them through `transept.gateway`.
"""
