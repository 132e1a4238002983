"""Section 5: how the network learns.

In reading order: `config` (what can be set), `loss` (section 5.4), `batches` (read ahead, and moved
to the device), `update` (one step: gradients, then Adam at the rate of equation 3; whether the
largest batch fits), `ranks` (the same on several GPUs), `state` (what a resume needs), `observers`
(who watches a run) and `trainer` (the loop, and validation). `engines.training` has the fast step
for a GPU.
"""
