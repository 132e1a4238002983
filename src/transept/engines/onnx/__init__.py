"""The layer program as ONNX graphs, for ONNX Runtime.

In reading order: `network` (encoder and decoders), `graph` (records nodes and weights) and `runner`
(runs the files).
"""
