"""Powers of two: a GPU has an instruction for them, and exp(x) is 2 to the power of x · log₂ e."""

import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
