"""Check of exercise 3."""

import torch
from comparing import close, must, shaped

from transept.model.attention import MultiHeadAttention, reference_attention
from transept.model.packing import Tokens


def check(student):
    """Each number says where it comes from: 100 · sentence + 10 · position + column."""
    n_heads, d_k, length = 2, 3, 4
    sentence, position = torch.arange(2)[:, None, None], torch.arange(length)[:, None]
    x = 100 * sentence + 10 * position + torch.arange(n_heads * d_k)
    heads = student.split_heads(x, n_heads)
    shaped(heads, (2, n_heads, length, d_k), "split_heads of a tensor of shape (2, 4, 6), 2 heads,")
    for b, h, row, column in torch.cartesian_prod(*map(torch.arange, heads.shape)).tolist():
        number, expected = int(heads[b, h, row, column]), int(x[b, row, h * d_k + column])
        must(
            number == expected,
            f"number {column} of head {h} at position {row} is column {number % 10} of position "
            f"{number // 10 % 10}, not column {expected % 10} of position {row}",
        )
    merged = student.merge_heads(heads)
    shaped(merged, tuple(x.shape), "merge_heads of a tensor of shape (2, 2, 4, 3)")
    same = torch.equal(merged, x)
    must(same, "merge_heads(split_heads(x, 2)) is not x: which axes must be adjacent?")
    check_attention(student)


def check_attention(student):
    """The functions, put into multi-head attention, give the output of the package."""
    torch.manual_seed(1)
    package = MultiHeadAttention(d_model=12, n_heads=3, d_k=4, d_v=2)
    layout = Tokens.padded(torch.ones(2, 5, dtype=torch.long), pad_id=0).layout
    x, mask = torch.randn(2, 5, 12), torch.ones(2, 5, 5, dtype=torch.bool)
    with torch.no_grad():
        q, k, v = (student.split_heads(part, 3) for part in package.split(package.w_qkv(x)))
        found = package.w_o(student.merge_heads(reference_attention(q, k, v, mask)))
        expected = package(x.flatten(0, 1), None, layout, layout, mask).view(2, 5, 12)
    close(found, expected, "multi-head attention with your functions")
