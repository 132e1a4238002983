"""Section 5: how the network learns.

In reading order: `config` (what can be set), `loss` (section 5.4), `schedule` (equation 3),
`batches` (the loader's, as the network reads them), `update` (one step: gradients, then Adam,
section 5.3), `moving_average`, `tensors` (what a checkpoint needs of it), `validation`, `progress`
(how far a run has come), `observers` (who watches it), `trainer` (the loop) and `flops` (how much
arithmetic a step is).

With other ranks: `replica` (gradients summed over them) and `sharding` (Adam's moments shared out).
On a GPU: `rehearsal` (whether the largest batch fits); `engines.training` has the fast step.
"""
