"""Training, section 5.

In reading order: `config` (options), `loss` (label smoothing, section 5.4), `batches` (reading
ahead, moving to the device), `update` (one step: gradients, then Adam with the learning rate of
equation 3; a memory check), `ranks` (several GPUs), `state` (data for a resume), `observers`
(the metrics log), `quality` (BLEU of the development set) and `trainer` (the loop, and validation).
`engines.training` has the fast step for a GPU.
"""
