"""Check of exercise 6."""

import torch
from comparing import close, must, shaped

from transept import ModelConfig, Transformer


@torch.no_grad()
def check(student):
    """Compare with a network of the package, whose matrix is shared."""
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=20, n_layers=1, d_model=16, d_ff=16, n_heads=2)
    network = Transformer(config)
    matrix = network.projection.weight
    assert matrix is network.source_embedding.weight is network.target_embedding.weight
    ids, states = torch.tensor([7, 3, 19, 3]), torch.randn(5, 16)
    found = student.embed(ids, matrix)
    shaped(found, (4, 16), "the embedding of 4 tokens")
    times(found, network.source_embedding(ids), "an embedding", "row of the matrix", 4)
    found = student.logits(states, matrix)
    shaped(found, (5, 20), "the result of logits for 5 states and a vocabulary of 20")
    # Without padding, id 0: its row is zero.
    times(found[:, 1:], network.project(states)[:, 1:], "a logit", "dot product", 1)


def times(found, expected, what, of_what, factor):
    """Check a result, and say by which factor it is wrong if it is the same for all numbers."""
    ratio = factor * found / expected
    must(
        ratio.std() > 1e-3 or abs(ratio.mean() - factor) < 1e-3,
        f"{what} is {ratio.mean():.4g} times the {of_what}, not {factor} times (d_model = 16)",
    )
    close(found, expected, what)
