"""Scores, attention and word alignments of given pairs, by one network or an ensemble."""

import math
from collections.abc import Iterator, Sequence
from unicodedata import category

import torch

from transept.api.texts import Alignment
from transept.decoding.engine import TOKENS_AT_ONCE, Ids, batches_by_length
from transept.model.attention import record_attention
from transept.model.packing import pad_rows
from transept.model.transformer import Transformer
from transept.progress import Tally, Watch, no_progress
from transept.shapes import Float, Int, Tensor
from transept.text.tokenizer import EOS_ID, PAD_ID, Tokenizer

LOGITS = 1 << 23
"""Maximum logits in memory at a time. Those of a whole batch take hundreds of megabytes."""


class Networks:
    """Networks with the same vocabularies. Their probabilities are averaged."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self.models = tuple(model.eval() for model in models)
        self.device = self.models[0].projection.weight.device

    def __str__(self) -> str:
        counted = " + ".join(f"{model.n_parameters():,}" for model in self.models)
        return f"{counted} parameters on {self.device}"

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Batches of indices of pairs with similar lengths."""
        return batches_by_length(lengths, TOKENS_AT_ONCE[self.device.type])

    def log_probabilities(
        self, pairs: Sequence[tuple[Ids, Ids]], watch: Watch = no_progress
    ) -> list[list[float]]:
        """`token_log_probabilities` of any number of pairs, in batches."""
        found: list[list[float]] = [[] for _ in pairs]
        tally = Tally(watch, len(pairs))
        for batch in self.batches([max(map(len, pair)) for pair in pairs]):
            sources, targets = zip(*(pairs[index] for index in batch), strict=True)
            each = self.token_log_probabilities(sources, targets)
            for index, values in zip(batch, each, strict=True):
                found[index] = values
            tally.add(len(batch))
        return found

    @torch.inference_mode()
    def token_log_probabilities(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> list[list[float]]:
        """The log-probability of each target token, given the source and the previous tokens."""
        source_ids, target_ids = self._padded(sources), self._padded(targets)
        each = torch.stack(
            [_token_log_probabilities(model, source_ids, target_ids) for model in self.models]
        )
        mean = each.logsumexp(dim=0) - math.log(len(self.models))
        return [row[: len(ids)] for row, ids in zip(mean.tolist(), targets, strict=True)]

    @torch.inference_mode()
    def next_log_probabilities(self, source: Ids, prefixes: Sequence[Ids]) -> Float[Tensor, "N V"]:
        """The log-probability of each token after prefixes of a target, of the same length."""
        source_ids = self._padded([source] * len(prefixes))
        # The decoder's input is shifted by one, so the last state is that after the prefix.
        target_ids = self._padded([[*prefix, EOS_ID] for prefix in prefixes])
        each = []
        for model in self.models:
            states = model.decoder_states(target_ids, model.encode(source_ids))
            last = states.view(*target_ids.shape, -1)[:, -1]
            logits = model.project(last).float()
            logits[:, model.config.pad_id] = -torch.inf
            each.append(logits.log_softmax(dim=1))
        return (torch.stack(each).logsumexp(dim=0) - math.log(len(each))).cpu()

    @torch.inference_mode()
    def source_attention(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> Float[Tensor, "B T S"]:
        """The attention of each decoder step to each source token.

        The mean over heads, over the upper third of the layers, and over the networks. The lower
        layers do not align words. Which of the upper layers aligns best differs between models.
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
        """The word alignment of each pair. The ids do not include end symbols."""
        lengths = [max(map(len, pair)) + 1 for pair in pairs]
        found: list[Alignment] = [()] * len(pairs)
        framed = [(vocabularies[0].framed(source), target) for source, target in pairs]
        for batch in self.batches(lengths):
            some = [framed[index] for index in batch]
            # The end symbol is not aligned, so the target does not need one, unless it is empty:
            # a row must have a token.
            weights = self.source_attention(
                [source for source, _ in some], [ids or [EOS_ID] for _, ids in some]
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
    """Align each target word with one source word.

    The score of a pair is the attention from the target word to the source word, multiplied by the
    share of the source word's total attention that comes from this target word. The second factor
    reduces the score of source words to which many target words attend by default.

    Args:
        weights: The attention of each target token to each source token. Tokens after those in
            `source_words` and `target_words`, such as the end symbol, are ignored.
        source_words: The words that each source token is part of, normally one.
        target_words: The same for the target.
    """
    by_word = _sum_by_word(_sum_by_word(weights, target_words).T, source_words)
    if 0 in by_word.shape:
        return ()
    # The minimum avoids dividing by zero for a word without attention.
    shares = by_word / by_word.sum(dim=1, keepdim=True).clamp_min(1e-9)
    chosen = (by_word * shares).argmax(dim=0).tolist()
    return tuple(sorted((i, j) for j, i in enumerate(chosen)))


def _sum_by_word(
    weights: Float[Tensor, "L others"], words: Sequence[Sequence[int]]
) -> Float[Tensor, "words others"]:
    """Sum the rows of each word's tokens."""
    n_words = max((number for numbers in words for number in numbers), default=-1) + 1
    pairs = [(token, word) for token, numbers in enumerate(words) for word in numbers]
    tokens = torch.tensor([token for token, _ in pairs], dtype=torch.long, device=weights.device)
    indices = torch.tensor([word for _, word in pairs], dtype=torch.long, device=weights.device)
    sums = weights.new_zeros(n_words, weights.shape[1])
    return sums.index_add(0, indices, weights[tokens])


def words_of_tokens(surfaces: Sequence[bytes]) -> list[list[int]]:
    """The indices, from 0, of the white-space separated words that each token is part of.

    Punctuation does not belong to a word, unless the word has nothing else. Heads often attend to
    the full stop by default, and this attention must not count for the last word.
    """
    text = b"".join(surfaces).decode("utf-8", "surrogateescape")
    word = -1
    numbers: list[int | None] = []
    is_punctuation: list[bool] = []
    was_space = True
    for character in text:
        is_space = character.isspace()
        word += was_space and not is_space
        width = len(character.encode("utf-8", "surrogateescape"))
        numbers += [None if is_space else word] * width
        is_punctuation += [category(character)[0] in "PS"] * width
        was_space = is_space
    pairs = zip(numbers, is_punctuation, strict=True)
    with_letters = {number for number, punctuation in pairs if not punctuation}
    words, start = [], 0
    for surface in surfaces:
        seen = range(start, start + len(surface))
        found = {
            numbers[at] for at in seen if not (is_punctuation[at] and numbers[at] in with_letters)
        }
        words.append(sorted(number for number in found if number is not None))
        start += len(surface)
    return words
