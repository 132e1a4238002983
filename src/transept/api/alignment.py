"""Which words belong together, read off the attention to the source."""

from collections.abc import Sequence
from unicodedata import category

import torch

from transept.api.results import Alignment
from transept.shapes import Float, Tensor


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
