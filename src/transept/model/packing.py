"""How the sentences of a batch lie on one flat axis of tokens.

The stacks see tokens laid end to end, `Float[N, D]`, and never ask where a sentence ends:
embedding, norms and feed-forward networks treat each token by itself. Attention alone must know
which tokens belong together. It takes them apart into rows, `Float[B, L, D]`, and puts them back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from transept.errors import DataError
from transept.shapes import Bool, Int, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where each token of a flat axis belongs.

    `rows` holds, for each place of a row, the flat index of its token; None says that the flat
    axis is the rows themselves, one after the other. A padded batch is such a case, and so is a
    batch of tiles. Sentences may share a row: `segments` numbers them, and tokens see each other
    only within their segment. Segment 0 is padding.
    """

    positions: Int[Tensor, " N"]
    """Place of each token in its sentence, from 0."""
    segments: Int[Tensor, "B L"]
    """Which sentence of the row stands in each place; 0: none."""
    row_positions: Int[Tensor, "B L"]
    """`positions`, taken apart into rows."""
    rows: Int[Tensor, "B L"] | None
    """Flat index of the token in each place, or None where the flat axis is the rows."""
    places: Int[Tensor, " N"] | None
    """The inverse of `rows`: where in the flattened rows each token stands."""
    max_length: int
    """No sentence is longer than this. A number of the host, so that asking costs no wait."""

    def apart(self, x: Tensor) -> Tensor:
        """Take flat tokens `N …` apart into rows `B L …`."""
        if self.rows is None or self.places is None:
            return x.view(*self.segments.shape, *x.shape[1:])
        apart: Tensor = _Apart.apply(x, self.rows, self.places)  # type: ignore[no-untyped-call]
        return apart

    def together(self, x: Tensor) -> Tensor:
        """Lay rows `B L …` end to end as flat tokens `N …`."""
        return x.flatten(0, 1) if self.places is None else x.flatten(0, 1)[self.places]


class _Apart(torch.autograd.Function):
    """x[rows], whose gradient is a plain look-up: padding, which repeats tokens, gets none.

    torch's own gradient adds up over repeated indices, which is slow.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        return x[rows]

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return outer[0].flatten(0, 1)[places], None, None


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Token ids on a flat axis, with the layout that tells the sentences apart."""

    ids: Int[Tensor, " N"]
    layout: Layout

    @classmethod
    def padded(cls, ids: Int[Tensor, "B L"], pad_id: int) -> "Tokens":
        """Rows of ids, each one sentence, filled up with `pad_id` at the end."""
        if ids.numel() == 0:
            raise DataError(f"the batch of shape {tuple(ids.shape)} holds no token")
        segments = (ids != pad_id).long()
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        layout = Layout(
            positions=positions.flatten(),
            segments=segments,
            row_positions=positions,
            rows=None,
            places=None,
            max_length=ids.shape[1],
        )
        return cls(ids.flatten(), layout)

    @classmethod
    def tiled(
        cls,
        ids: Int[Tensor, "tiles places"],
        segments: Int[Tensor, "tiles places"],
        positions: Int[Tensor, "tiles places"],
        *,
        row_tiles: int = 1,
    ) -> "Tokens":
        """Tiles that hold several sentences each; `segments` numbers them, 0 is padding.

        A sentence longer than a tile lies in neighbouring tiles: `row_tiles` of them are then one
        row of attention.
        """
        rows = (-1, row_tiles * ids.shape[1])
        layout = Layout(
            positions=positions.flatten(),
            segments=segments.reshape(rows),
            row_positions=positions.reshape(rows),
            rows=None,
            places=None,
            max_length=row_tiles * ids.shape[1],
        )
        return cls(ids.flatten(), layout)

    def without_padding(self) -> "Tokens":
        """The same sentences with the padding left out of the flat axis.

        Worth it where shapes may change from batch to batch, as on a CPU: nothing but attention
        then spends time on padding. (On a GPU it would make the host wait for a count.)
        """
        layout = self.layout
        real = layout.segments.flatten() > 0
        assert layout.rows is None, "padding is only found where the flat axis is the rows"
        places = real.nonzero().squeeze(1)
        # Padding repeats some real token; its segment 0 hides it.
        rows = (real.cumsum(0) - 1).clamp(min=0).view(layout.segments.shape)
        compact = Layout(
            positions=layout.positions[places],
            segments=layout.segments,
            row_positions=layout.row_positions,
            rows=rows,
            places=places,
            max_length=layout.max_length,
        )
        return Tokens(self.ids[places], compact)

    def with_ids(self, ids: Int[Tensor, " N"]) -> "Tokens":
        """Other ids in the same places."""
        return Tokens(ids, self.layout)

    def shifted_right(self, start_id: int) -> "Tokens":
        """Each sentence one place later, with `start_id` first: the decoder's input."""
        previous = self.ids.roll(1)
        return self.with_ids(torch.where(self.layout.positions == 0, start_id, previous))


@dataclass(frozen=True, slots=True)
class Band:
    """Which keys a query sees by their distance: from `before` places back to `after` ahead.

    None is no limit. The paper's attention is unrestricted or causal (section 3.2.3), or restricted
    to a neighbourhood (section 4).
    """

    before: int | None = None
    after: int | None = None

    @classmethod
    def causal(cls) -> "Band":
        """Decoder self-attention: no position sees a later one."""
        return cls(after=0)

    @classmethod
    def restricted(cls, r: int) -> "Band":
        """Section 4: the neighbourhood of r positions around the query's own."""
        return cls(before=(r - 1) // 2, after=r // 2)

    @classmethod
    def causal_restricted(cls, r: int) -> "Band":
        """Section 4 in the decoder: the query's own position and the r − 1 before it."""
        return cls(before=r - 1, after=0)


def visible(queries: Layout, keys: Layout, band: Band) -> Bool[Tensor, "B T S"]:
    """The attention mask, True = may attend: the same sentence, and within the band."""
    mask = queries.segments[:, :, None] == keys.segments[:, None, :]
    distance = keys.row_positions[:, None, :] - queries.row_positions[:, :, None]
    if band.before is not None:
        mask = mask & (distance >= -band.before)
    if band.after is not None:
        mask = mask & (distance <= band.after)
    # Padding that would see nothing sees everything: a softmax over nothing is not a number,
    # and a number that nobody reads does no harm.
    return mask | ~mask.any(-1, keepdim=True)


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> Int[Tensor, "B L"]:
    """Ids as a batch: shorter rows are filled up with the pad id."""
    width = max(map(len, rows))
    return torch.tensor([[*ids, *[pad_id] * (width - len(ids))] for ids in rows])
