"""The legend of axis names. Every tensor in a signature is described with these letters.

| axis | meaning                                                                     |
|------|-----------------------------------------------------------------------------|
| B    | batch: sentences, or rows of a batch                                        |
| S    | source positions in a row                                                   |
| T    | target positions in a row                                                   |
| L    | positions in a row, of whichever side                                       |
| R, C | tiles of a batch, and places in a tile                                      |
| N    | tokens laid end to end, all rows of a batch (Ns source side, Nt target side) |
| D    | d_model, the width of the residual stream                                   |
| H    | n_heads                                                                     |
| Dk   | width of a head's queries and keys                                          |
| Dv   | width of a head's values                                                    |
| F    | d_ff, the inner width of the feed-forward network                           |
| V    | vocabulary                                                                  |
| W    | beam width                                                                  |

Masks are boolean and True means *may attend*. The annotations are checked in the tests, where
an import hook turns each into an assertion; elsewhere they cost nothing.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Tensor"]
