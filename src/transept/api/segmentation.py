"""Search for the likeliest segmentation of a given text.

A text has many segmentations into subwords. The tokenizer returns one, the canonical segmentation.
A beam search may output another one of the same text, and log P of the two may differ by many nats.
So scoring searches too, with a constraint: a token may come next only if its UTF-8 bytes are the
next ones of the text.
"""

from collections.abc import Sequence

import torch

from transept.api.texts import LengthLimits
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Ids, Input, StepEngine
from transept.progress import Watch
from transept.shapes import Bool, Int, Tensor
from transept.text.tokenizer import EOS_ID, Tokenizer

SEARCH = SearchConfig(beam_size=4, length_penalty=0.0)
"""Of 200 outputs of the bundled model for news, beam sizes 2, 4 and 8 find all. For references,
wider beams find likelier segmentations, in proportionally more time."""
NOWHERE = -1
"""The position of a row after the end symbol, or after a token that is not allowed."""


def likeliest_segmentations(
    engine: StepEngine,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[Ids, Ids]],
    limits: LengthLimits,
    watch: Watch,
) -> list[Ids]:
    """The likeliest segmentation that beam search finds for each target.

    If it finds none, this is the given one.

    Args:
        engine: The engine.
        tokenizer: The target vocabulary.
        pairs: The ids of each source and of its target, end symbols included.
        limits: The limits of the networks.
        watch: Called with the numbers of finished and of all pairs.
    """
    texts = [b"".join(tokenizer.surfaces(target)) for _, target in pairs]
    inputs = [Input(source, limits.clamp(len(target) * 5 // 4 + 8)) for source, target in pairs]

    def constrain(batch: Sequence[int]) -> SegmentationConstraint:
        return SegmentationConstraint(tokenizer, [texts[index] for index in batch])

    result = [target for _, target in pairs]
    for index, outputs in enumerate(engine.search(inputs, SEARCH, watch, constrain)):
        best = [*outputs[0].ids, EOS_ID] if outputs and outputs[0].finished else None
        # The surface of the unknown token, and that of two words without a space, are ambiguous.
        if best is not None and tokenizer.decode(best) == tokenizer.decode(result[index]):
            result[index] = best
    return result


class SegmentationConstraint:
    """A `decoding.step.Constraint`: each output is a segmentation of its text."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[bytes]) -> None:
        """Set the texts.

        Args:
            tokenizer: The target vocabulary.
            texts: The joined surfaces of each text's tokens.
        """
        self._tokenizer, self._texts = tokenizer, texts
        self._known: dict[tuple[int, int], dict[int, int]] = {}
        self._rows = [(number, 0) for number in range(len(texts))]
        """The number of each row's text, and the position in it in bytes."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Append a token to each row (None: at the start); return which tokens may come next."""
        if tokens is not None:
            # A search may append a forbidden token to a row of probability zero.
            self._rows = [
                (row[0], self._tokens_at(row).get(token, NOWHERE))
                for row, token in zip(self._rows, tokens.tolist(), strict=True)
            ]
        allowed = torch.zeros(len(self._rows), self._tokenizer.vocab_size, dtype=torch.bool)
        for number, row in enumerate(self._rows):
            allowed[number, list(self._tokens_at(row))] = True
        return allowed

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Continue with these rows."""
        self._rows = [self._rows[row] for row in rows.tolist()]

    def _tokens_at(self, row: tuple[int, int]) -> dict[int, int]:
        """The tokens that may come at a position, and the position after each."""
        if row not in self._known:
            self._known[row] = self._find_tokens(self._texts[row[0]], row[1])
        return self._known[row]

    def _find_tokens(self, text: bytes, at: int) -> dict[int, int]:
        if at == NOWHERE:
            return {}
        if at == len(text):
            return {EOS_ID: NOWHERE}
        found = dict(self._tokenizer.tokens_at(text, at))
        if at == 0 and text.startswith(b" "):
            # The tokenizer puts a space before a text. A model may omit it.
            found |= self._tokenizer.tokens_at(text, 1)
        return found
