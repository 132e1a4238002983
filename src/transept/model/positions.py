"""Positional encoding, section 3.5: sinusoids, or learned vectors (row E of Table 3)."""

from threading import Lock

import torch
from torch import nn
from torch.nn import functional as F

from transept.errors import DataError
from transept.model.packing import Layout
from transept.shapes import Float, Int, Tensor


def sinusoids(positions: Int[Tensor, " L"], d_model: int) -> Float[Tensor, "L D"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)) and PE(pos, 2i+1) = cos(the same).

    Computed in double precision: at position 1000, single precision is wrong in the fifth digit.
    """
    two_i = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float64)
    angle = positions.double()[:, None] / 10_000 ** (two_i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


_growing = Lock()
"""Several threads may decode: a table that one has extended must not become shorter again."""


class SinusoidalPositions(nn.Module):
    """The paper's fixed positional encoding, for sequences of any length."""

    table: Float[Tensor, "L D"]

    def __init__(self, d_model: int, n_rows: int = 1024) -> None:
        super().__init__()
        self.d_model = d_model
        if torch.get_default_device().type == "meta":
            # Meta tensors have no values, and inferring the shape would import torch's compiler.
            table = torch.empty(n_rows, d_model)
        else:
            table = sinusoids(torch.arange(n_rows), d_model).to(torch.get_default_dtype())
        # Neither a parameter nor part of checkpoints: it can be recomputed.
        self.register_buffer("table", table, persistent=False)

    def forward(self, layout: Layout) -> Float[Tensor, "N D"]:
        """The encoding of each token's position in its sentence."""
        self.reach(layout.max_length)
        return self.at(layout.positions)

    def at(self, positions: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """The encodings of these positions. The table must be long enough; see `reach`."""
        return self.table[positions]

    def reach(self, length: int) -> None:
        """Make the table long enough for sentences of `length` tokens."""
        if length > len(self.table):
            with _growing:
                rows = torch.arange(2 * max(length, len(self.table)), device=self.table.device)
                self.table = sinusoids(rows, self.d_model).to(self.table)


class LearnedPositions(nn.Module):
    """Learned positional encoding: a vector per position, up to `max_positions`."""

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))

    def forward(self, layout: Layout) -> Float[Tensor, "N D"]:
        """The vector of each token's position in its sentence."""
        self.reach(layout.max_length)
        return self.at(layout.positions)

    def reach(self, length: int) -> None:
        """Raise DataError if `length` exceeds the number of learned positions."""
        if length > len(self.weight):
            raise DataError(
                f"a sentence of {length} tokens is longer than the {len(self.weight)} learned "
                "positions; split it, or train with a larger model.max_positions or with "
                "sinusoidal positions"
            )

    def at(self, positions: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """The vectors of these positions."""
        return F.embedding(positions, self.weight)


Positions = SinusoidalPositions | LearnedPositions
