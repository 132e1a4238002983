"""The legend of axis names. Every tensor in a signature is described with these letters.

| axis | meaning                                                                      |
|------|------------------------------------------------------------------------------|
| B    | batch: sentences, or rows of a batch                                         |
| S    | source positions in a row                                                    |
| T    | target positions in a row                                                    |
| L    | positions in a row, of whichever side                                        |
| N    | tokens laid end to end, all rows of a batch (Ns source side, Nt target side) |
| M    | such a number again, and another one: rows that a search goes on with        |
| D    | d_model, the width of the residual stream                                    |
| H    | n_heads                                                                      |
| Dk   | width of a head's queries and keys                                           |
| Dv   | width of a head's values                                                     |
| Dh   | width of a head, of whichever kind                                           |
| F    | d_ff, the inner width of the feed-forward network                            |
| O, I | what a matrix gives, and what it takes                                       |
| Y    | n_layers                                                                     |
| V    | vocabulary (Vs source side)                                                  |
| C    | columns of logits: V, and perhaps some more that count for nothing           |
| K    | the likeliest few: tokens of a row, candidates of a beam                     |
| W    | beam width                                                                   |
| R    | sentences that a GPU searches for at once, or room for them                  |

Letters side by side are multiplied: HDv is all heads of the values. An axis that is rare says
itself what it is, in small letters: `tiles`, `slots`. Numbers, `_` and `...` are jaxtyping's.

Masks are boolean and True means *may attend*. The annotations are checked in the tests, where
an import hook turns each into an assertion; elsewhere they cost nothing. Only `kernels.beams`
reads them: it looks for the R.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Bool", "Float", "Int", "Tensor"]
