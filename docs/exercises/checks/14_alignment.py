"""Check of exercise 14."""

import torch
from comparing import close, must, shaped

from transept.api.attention import AttentionMap, Side

TARGET = Side(("▁Der", "▁Gar", "t", "en"), ("Der", "Garten"), (0, 1, 1, 1))
SOURCE = Side(("▁The", "▁gar", "den", "</s>"), ("The", "garden", "</s>"), (0, 1, 1, 2))


def check(student):
    """Compare with the package's map between words."""
    torch.manual_seed(1)
    weights = torch.randn(3, 4, 4).softmax(dim=-1)
    found = student.word_weights(weights, list(TARGET.word_of), list(SOURCE.word_of))
    shaped(found, (3, 2, 3), "the weights of 3 heads between 2 target and 3 source words")
    expected = AttentionMap(TARGET, SOURCE, weights).joined().weights
    der, garten = found[0].sum(-1)
    must(
        abs(der - 1) < 1e-4,
        f"the weights of a word with one subword sum to {der:.2f}, not 1: "
        "attention to a word is the sum over its subwords",
    )
    must(
        abs(garten - 1) < 1e-4,
        f"the weights of a word with three subwords sum to {garten:.2f}, not 1: "
        "attention from a word is the mean over its subwords",
    )
    close(found, expected, "the matrix of weights between words")
    # Two heads find the first word, the third head is very sure of another.
    heads = torch.tensor([[[0.5, 0.3, 0.2]], [[0.5, 0.3, 0.2]], [[0.1, 0.1, 0.8]]])
    aligned = student.align(heads)
    must(isinstance(aligned, list), f"align returns a {type(aligned).__name__}, not a list")
    must(len(aligned) == 1, f"align returns {len(aligned)} numbers for 1 target word: {aligned}")
    must(
        aligned == [2],
        f"mean weights of 0.37, 0.23 and 0.40 align a word with 2, not with {aligned[0]}: "
        "take the mean over heads first",
    )
    rows = torch.tensor([[[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]]])
    aligned = student.align(rows)
    must(aligned == [1, 0], f"align returns {aligned}, not [1, 0], for the rows {rows[0].tolist()}")
