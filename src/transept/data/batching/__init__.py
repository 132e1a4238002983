"""From a corpus to batches, section 5.1.

    Mixture      the pairs of all corpora, numbered through
       │ plan    which pairs make which batch: a pure function, nothing is read
       ▼
    BatchPlan    one update of the weights; its MicroPlans say where each pair stands
       │ collate in a worker process: numpy, no torch
       ▼
    Header       the batch in figures, and a Shape for each micro-batch of this rank
    + block      their ids, segments and positions: one array, one copy to the device
       │ to_batch in the trainer: `training.batches`, which reads ahead
       ▼
    Batch        the Header, and MicroBatches of source and target
                 Tokens (ids on a flat axis) with their Layout: `model.packing`

In reading order: `mixture` (several corpora as one, shuffled), `layouts` (a window of an epoch
becomes batches, packed or by length), `tiles` (packing), `plan` (which pairs make which batch, and
how full they are) and `feed` (their ids, as a worker process reads them). No torch here.
"""
