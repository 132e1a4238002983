"""Exercise 8: count the parameters of Table 3 (section 6.2).

The last column of Table 3 is the number of trained parameters, in millions. Count them for any row
of the table:

- one embedding matrix, shared by source, target and projection (section 3.4);
- W_Q, W_K, W_V and W_O in each multi-head attention, without biases (section 3.2.2). d_k and d_v
  may differ, as in rows (B);
- two matrices and two biases in each feed-forward network (section 3.3);
- a gain and a bias in the layer normalization after each sub-layer (section 3.1).

Hint: how many sub-layers has an encoder layer, how many has a decoder layer, and which?
"""


def n_parameters(
    vocab_size: int, n_layers: int, d_model: int, d_ff: int, n_heads: int, d_k: int, d_v: int
) -> int:
    """Return the number of parameters of a Transformer with `n_layers` layers in each stack."""
    raise NotImplementedError
