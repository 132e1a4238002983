"""How the sentences of a batch share one flat axis of tokens.

The encoder and decoder stacks see concatenated tokens, `Float[N, D]`, without sentence boundaries:
embedding, layer normalization and feed-forward networks treat each token separately. Only
attention must know which tokens belong together. It arranges them in rows, `Float[B, L, D]`
(`Layout.to_rows`), and flattens its output again (`Layout.to_flat`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch.nn import functional as F

from transept.errors import DataError
from transept.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Maps the tokens of a flat axis to the rows of attention.

    `rows` holds the flat index of the token in each slot of a row. None means that the flat axis is
    the concatenation of the rows, as in padded and in tiled batches. Several sentences may share a
    row: `segments` numbers them, and tokens attend only within their segment. Segment 0 is padding.
    """

    positions: Int[Tensor, " N"]
    """Position of each token in its sentence, from 0."""
    segments: Int[Tensor, "B L"]
    """The number of the sentence in each slot of a row; 0: padding."""
    row_positions: Int[Tensor, "B L"]
    """`positions`, arranged in rows."""
    rows: Int[Tensor, "B L"] | None
    """Flat index of the token in each slot. None: the flat axis is the concatenated rows."""
    slots: Int[Tensor, " N"] | None
    """The inverse of `rows`: the index of each token in the flattened rows."""
    max_length: int
    """Upper bound of the sentence lengths. Stored on the host, so reading it does not
    synchronize."""

    def to_rows(self, x: Tensor) -> Tensor:
        """Arrange flat tokens `N …` in rows `B L …`."""
        if self.rows is None or self.slots is None:
            return x.view(*self.segments.shape, *x.shape[1:])
        rows: Tensor = _ToRows.apply(x, self.rows, self.slots)  # type: ignore[no-untyped-call]
        return rows

    def to_flat(self, x: Tensor) -> Tensor:
        """Concatenate rows `B L …` to flat tokens `N …`, without padding."""
        return x.flatten(0, 1) if self.slots is None else x.flatten(0, 1)[self.slots]


class _ToRows(torch.autograd.Function):
    """x[rows] with a plain look-up as gradient: padding repeats tokens but gets no gradient.

    torch's own gradient sums over repeated indices, which is slow.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, slots: Tensor) -> Tensor:
        ctx.save_for_backward(slots)
        return x[rows]

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        (slots,) = ctx.saved_tensors
        return outer[0].flatten(0, 1)[slots], None, None


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Token ids on a flat axis, with the layout of their sentences."""

    ids: Int[Tensor, " N"]
    layout: Layout

    @classmethod
    def padded(cls, ids: Int[Tensor, "B L"], pad_id: int) -> "Tokens":
        """One sentence per row, padded with `pad_id` at the end."""
        if ids.numel() == 0:
            raise DataError(f"the batch of shape {tuple(ids.shape)} contains no tokens")
        segments = (ids != pad_id).long()
        positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        layout = Layout(
            positions=positions.flatten(),
            segments=segments,
            row_positions=positions,
            rows=None,
            slots=None,
            max_length=ids.shape[1],
        )
        return cls(ids.flatten(), layout)

    @classmethod
    def tiled(
        cls,
        ids: Int[Tensor, "tiles slots"],
        segments: Int[Tensor, "tiles slots"],
        positions: Int[Tensor, "tiles slots"],
        *,
        row_tiles: int = 1,
    ) -> "Tokens":
        """Tiles with several sentences each; `segments` numbers them, 0 is padding.

        A sentence longer than a tile spans adjacent tiles. `row_tiles` tiles form one row of
        attention.
        """
        rows = (-1, row_tiles * ids.shape[1])
        layout = Layout(
            positions=positions.flatten(),
            segments=segments.reshape(rows),
            row_positions=positions.reshape(rows),
            rows=None,
            slots=None,
            max_length=row_tiles * ids.shape[1],
        )
        return cls(ids.flatten(), layout)

    def without_padding(self, length: Callable[[int], int] = int) -> "Tokens":
        """The same sentences without padding on the flat axis.

        Only attention then spends time on padding. This is useful on a CPU, where shapes may
        change from batch to batch. On a GPU, the host would have to wait for the token count.

        Args:
            length: The wanted length of the flat axis for a number of tokens. If it is larger, some
                of the padding stays.
        """
        layout = self.layout
        kept = layout.segments.flatten() > 0
        assert layout.rows is None, "the flat axis has no padding"
        n_tokens = int(kept.sum())
        padding = (~kept).nonzero().squeeze(1)
        kept[padding[: length(n_tokens) - n_tokens]] = True
        slots = kept.nonzero().squeeze(1)
        # Other padding repeats a token; attention ignores it because its segment is 0.
        rows = (kept.cumsum(0) - 1).clamp(min=0).view(layout.segments.shape)
        compact = Layout(
            positions=layout.positions[slots],
            segments=layout.segments,
            row_positions=layout.row_positions,
            rows=rows,
            slots=slots,
            max_length=layout.max_length,
        )
        return Tokens(self.ids[slots], compact)

    def with_ids(self, ids: Int[Tensor, " N"]) -> "Tokens":
        """Other ids with the same layout."""
        return Tokens(ids, self.layout)

    def shifted_right(self, start_id: int) -> "Tokens":
        """The decoder's input: each sentence shifted by one position, starting with `start_id`."""
        previous = self.ids.roll(1)
        return self.with_ids(torch.where(self.layout.positions == 0, start_id, previous))


@dataclass(frozen=True, slots=True)
class Band:
    """The keys that a query sees: from `before` positions back to `after` positions ahead.

    None means no limit. The paper's attention is unrestricted or causal (section 3.2.3), or
    restricted to a neighbourhood (section 4).
    """

    before: int | None = None
    after: int | None = None

    @classmethod
    def causal(cls) -> "Band":
        """Decoder self-attention: no position sees a later one."""
        return cls(after=0)

    @classmethod
    def restricted(cls, r: int) -> "Band":
        """Section 4: a neighbourhood of r positions around the query."""
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
    # Padding that would see nothing sees everything: a softmax over nothing is NaN. The output
    # of padding is never used.
    return mask | ~mask.any(-1, keepdim=True)


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> Int[Tensor, "B L"]:
    """Ids as a batch: shorter rows are padded with `pad_id`."""
    width = max(map(len, rows))
    return torch.tensor([[*ids, *[pad_id] * (width - len(ids))] for ids in rows])


# --- restricted self-attention ------------------------------------------------------------------

# A mask over whole rows hides the keys outside a neighbourhood, but all n² scores are computed. In
# blocks, restricted self-attention takes r · n · d operations, as in Table 1. The keys of a block
# are those of its queries' positions, and those before and after it that its queries may see.

SMALLEST: Final = 64
"""The minimum number of queries of a block. Smaller blocks take longer."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How rows are cut: the queries of a block, and the keys before and after them."""

    before: int
    size: int
    after: int

    @classmethod
    def of(cls, band: Band) -> "Cut | None":
        """The blocks for a neighbourhood. None if it is not bounded on both sides."""
        if band.before is None or band.after is None:
            return None
        return cls(band.before, max(SMALLEST, band.before + band.after), band.after)

    @property
    def width(self) -> int:
        """The number of keys of a block."""
        return self.before + self.size + self.after

    def queries(self, rows: Tensor) -> Tensor:
        """Cut rows `B L …` into blocks `blocks T …`. The last block of a row is padded."""
        return self._blocks(rows, 0, 0)

    def keys(self, rows: Tensor) -> Tensor:
        """Cut rows `B L …` into overlapping blocks `blocks S …`."""
        return self._blocks(rows, self.before, self.after)

    def _blocks(self, rows: Tensor, before: int, after: int) -> Tensor:
        beside = (0, 0) * (rows.dim() - 2)
        rows = F.pad(rows, (*beside, before, -rows.shape[1] % self.size + after))
        blocks = rows.unfold(1, before + self.size + after, self.size)
        return blocks.movedim(-1, 2).flatten(0, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The blocks of a batch, with their masks."""

    layout: Layout
    band: Band
    cut: Cut
    mask: Bool[Tensor, "blocks T S"]

    def attend(
        self,
        attend: Callable[..., Tensor],
        q: Float[Tensor, "B H L Dk"],
        k: Float[Tensor, "B H L Dk"],
        v: Float[Tensor, "B H L Dv"],
        dropout: float = 0.0,
    ) -> Float[Tensor, "B H L Dv"]:
        """Equation (1) in each block.

        Args:
            attend: Computes equation (1).
            q: The queries of whole rows.
            k: Their keys.
            v: Their values.
            dropout: The fraction of weights that are dropped.
        """
        parts = (self.cut.queries, q), (self.cut.keys, k), (self.cut.keys, v)
        heads = [cut(x.transpose(1, 2)).transpose(1, 2) for cut, x in parts]
        blocks = attend(*heads, self.mask, dropout).transpose(1, 2)
        rows = blocks.unflatten(0, (len(q), -1)).flatten(1, 2)
        out: Tensor = rows[:, : q.shape[2]].transpose(1, 2)
        return out

    @property
    def whole(self) -> Bool[Tensor, "B L L"]:
        """The mask of whole rows."""
        return visible(self.layout, self.layout, self.band)


def self_mask(layout: Layout, band: Band) -> Bool[Tensor, "B L L"] | Blocks:
    """The mask of self-attention, in blocks if that is less work."""
    cut = Cut.of(band)
    if cut is None or layout.segments.shape[1] <= 2 * cut.width:
        return visible(layout, layout, band)
    queries, keys = (
        replace(layout, segments=part(layout.segments), row_positions=part(layout.row_positions))
        for part in (cut.queries, cut.keys)
    )
    return Blocks(layout, band, cut, visible(queries, keys, band))
