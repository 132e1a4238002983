"""What one network or an ensemble says of given pairs: scores, attention, aligned words."""

import math
from collections.abc import Iterator, Sequence
from unicodedata import category

import torch

from transept.api.texts import Alignment
from transept.decoding.engine import TOKENS_AT_ONCE, Ids, batches_by_length
from transept.model.attention import record_attention
from transept.model.packing import pad_rows
from transept.model.transformer import Transformer
from transept.shapes import Float, Int, Tensor
from transept.text.tokenizer import EOS_ID, PAD_ID, Tokenizer

LOGITS = 1 << 23
"""The most logits in memory at a time: all of a batch would be hundreds of megabytes."""


class Networks:
    """Networks that read and write the same ids. The mean of their probabilities counts."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self.models = tuple(model.eval() for model in models)
        self.device = self.models[0].projection.weight.device

    def __str__(self) -> str:
        counted = " + ".join(f"{model.n_parameters():,}" for model in self.models)
        return f"{counted} parameters on {self.device}"

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of pairs of similar length, as many as go through the network at once."""
        return batches_by_length(lengths, TOKENS_AT_ONCE[self.device.type])

    @torch.inference_mode()
    def token_log_probabilities(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> list[list[float]]:
        """Log p of each target token, given the source and the tokens before it."""
        source_ids, target_ids = self._padded(sources), self._padded(targets)
        each = torch.stack(
            [_token_log_probabilities(model, source_ids, target_ids) for model in self.models]
        )
        mean = each.logsumexp(dim=0) - math.log(len(self.models))
        return [row[: len(ids)] for row, ids in zip(mean.tolist(), targets, strict=True)]

    @torch.inference_mode()
    def source_attention(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> Float[Tensor, "B T S"]:
        """How much each decoder step looks at each source token.

        The mean over heads, over the upper third of the layers, and over the networks. The lower
        layers look elsewhere; which of the upper ones sees best differs from model to model.
        """
        source_ids, target_ids = self._padded(sources), self._padded(targets)
        each = []
        for model in self.models:
            layers = model.decoder.layers
            with record_attention(layers[-math.ceil(len(layers) / 3) :]) as weights:
                model.decoder_states(target_ids, model.encode(source_ids))
            of_layers = [w for name, w in weights.items() if name.endswith("source_attention")]
            each.append(torch.stack(of_layers).mean(dim=(0, 2)))
        return torch.stack(each).mean(dim=0).cpu()

    def alignments(
        self, pairs: Sequence[tuple[Ids, Ids]], vocabularies: tuple[Tokenizer, Tokenizer]
    ) -> list[Alignment]:
        """Which words of source and target belong together. The ids have no end symbols."""
        lengths = [max(map(len, pair)) + 1 for pair in pairs]
        found: list[Alignment] = [()] * len(pairs)
        for batch in self.batches(lengths):
            some = [pairs[index] for index in batch]
            # A target needs no end symbol here, since no word is aligned with it. But an empty
            # target gets one, because a row must have a token.
            weights = self.source_attention(
                [[*source, EOS_ID] for source, _ in some], [ids or [EOS_ID] for _, ids in some]
            )
            for index, row, pair in zip(batch, weights, some, strict=True):
                source, target = (
                    words_of_tokens(vocabulary.surfaces(ids))
                    for vocabulary, ids in zip(vocabularies, pair, strict=True)
                )
                found[index] = align(row, source, target)
        return found

    def _padded(self, rows: Sequence[Ids]) -> Int[Tensor, "B L"]:
        return pad_rows(rows, PAD_ID).to(self.device)


def _token_log_probabilities(
    model: Transformer, source_ids: Int[Tensor, "B S"], target_ids: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    states = model.decoder_states(target_ids, model.encode(source_ids))
    rows = max(1, LOGITS // model.config.vocab_size)
    parts = []
    for some, ids in zip(states.split(rows), target_ids.flatten().split(rows), strict=True):
        logits = model.project(some).float()
        logits[:, model.config.pad_id] = -torch.inf
        parts.append(logits.log_softmax(dim=1).gather(1, ids[:, None]))
    return torch.cat(parts).view(target_ids.shape)


def align(
    weights: Float[Tensor, "T S"],
    source_words: Sequence[Sequence[int]],
    target_words: Sequence[Sequence[int]],
) -> Alignment:
    """Each target word with the source word that it looks at most, and is looked at by most.

    A word at which many look, for want of a better one, belongs to none of them in particular. So
    the share of a target word's attention that a source word has counts, times the share of all
    the attention to this source word that comes from there.

    Args:
        weights: How much each target token looks at each source token. Whatever comes after the
            tokens that have words, such as the end symbol, is left out.
        source_words: The words that each source token is part of, normally one.
        target_words: The same for the target.
    """
    by_word = _sum_of_words(_sum_of_words(weights, target_words).T, source_words)
    if 0 in by_word.shape:
        return ()
    # The least number is for a word that nobody looks at.
    shares = by_word / by_word.sum(dim=1, keepdim=True).clamp_min(1e-9)
    chosen = (by_word * shares).argmax(dim=0).tolist()
    return tuple(sorted((i, j) for j, i in enumerate(chosen)))


def _sum_of_words(
    weights: Float[Tensor, "L others"], words: Sequence[Sequence[int]]
) -> Float[Tensor, "words others"]:
    """Rows of tokens added up to rows of words."""
    n_words = max((number for numbers in words for number in numbers), default=-1) + 1
    pairs = [(token, word) for token, numbers in enumerate(words) for word in numbers]
    tokens = torch.tensor([token for token, _ in pairs], dtype=torch.long, device=weights.device)
    places = torch.tensor([word for _, word in pairs], dtype=torch.long, device=weights.device)
    sums = weights.new_zeros(n_words, weights.shape[1])
    return sums.index_add(0, places, weights[tokens])


def words_of_tokens(surfaces: Sequence[bytes]) -> list[list[int]]:
    """The words, counted from 0 and separated by white space, that each token is part of.

    Punctuation is part of none, unless that has nothing else: heads that look for nothing look at
    the full stop, which is not to say at the last word.
    """
    text = b"".join(surfaces).decode("utf-8", "surrogateescape")
    word = -1
    numbers: list[int | None] = []
    silent: list[bool] = []
    was_space = True
    for character in text:
        is_space = character.isspace()
        word += was_space and not is_space
        width = len(character.encode("utf-8", "surrogateescape"))
        numbers += [None if is_space else word] * width
        silent += [category(character)[0] in "PS"] * width
        was_space = is_space
    spoken = {number for number, is_silent in zip(numbers, silent, strict=True) if not is_silent}
    words, start = [], 0
    for surface in surfaces:
        seen = range(start, start + len(surface))
        found = {numbers[at] for at in seen if not (silent[at] and numbers[at] in spoken)}
        words.append(sorted(number for number in found if number is not None))
        start += len(surface)
    return words
