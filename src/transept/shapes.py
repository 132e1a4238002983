"""Axis names used in the shape annotations of tensors.

| axis | meaning                                                                      |
|------|------------------------------------------------------------------------------|
| B    | batch: sentences, or rows of a batch                                         |
| S    | source positions in a row                                                    |
| T    | target positions in a row                                                    |
| L    | positions in a row, source or target                                         |
| N    | tokens of all rows of a batch, concatenated (Ns source, Nt target)           |
| M    | a second number of rows: those that a search keeps                           |
| D    | d_model, the width of the residual stream                                    |
| H    | n_heads                                                                      |
| Dk   | width of a head's queries and keys                                           |
| Dv   | width of a head's values                                                     |
| Dh   | width of a head, Dk or Dv                                                    |
| F    | d_ff, the inner width of the feed-forward network                            |
| O, I | output and input width of a matrix                                           |
| Y    | n_layers                                                                     |
| V    | vocabulary (Vs source side)                                                  |
| C    | columns of logits: V, possibly padded                                        |
| K    | top K: tokens of a row, candidates of a beam                                 |
| W    | beam width                                                                   |
| R    | sentences decoded at once on a GPU, or slots for them                        |

Adjacent letters are multiplied: HDv is the width of all heads' values. Rare axes have descriptive
names in lower case: `tiles`, `slots`. Numbers, `_` and `...` have their meaning in jaxtyping.

Masks are boolean and True means *may attend*. In the tests, an import hook turns the annotations
into assertions. Elsewhere they cost nothing. Only `kernels.beams` reads them at run time, to find
the axis R.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Tensor"]
