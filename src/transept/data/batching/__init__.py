"""From a corpus to batches, section 5.1.

    Mixture      the pairs of all corpora, numbered consecutively
       │ plan    which pairs form which batch: a pure function that reads no text
       ▼
    BatchPlan    one update of the weights; its MicroPlans give the position of each pair
       │ collate in a worker process: numpy, no torch
       ▼
    Header       the batch's statistics, and a Shape for each micro-batch of this rank
    + block      their ids, segments and positions: one array, one copy to the device
       │ to_batch in the trainer: `training.batches`, which reads ahead
       ▼
    Batch        the Header, and MicroBatches of source and target
                 Tokens (ids on a flat axis) with their Layout: `model.packing`

In reading order: `mixture` (several corpora as one, shuffled), `layouts` (a window of an epoch
becomes batches, packed or by length), `tiles` (packing), `plan` (which pairs form which batch, and
the fill rate) and `feed` (the ids, as a worker process reads them). Nothing here imports torch.
"""
