"""Check of exercise 2."""

import torch
from comparing import close, must, shaped

from transept.model.attention import attention_weights
from transept.model.packing import Band, Tokens, visible


def check(student):
    """First the masks of the package's encoder and decoder, then the use of a mask."""
    ids = torch.tensor([[5, 6, 7, 8, 1], [9, 4, 1, 0, 0]])
    layout = Tokens.padded(ids, pad_id=0).layout
    mask = student.encoder_mask(ids, 0)
    shaped(mask, (2, 5, 5), "the encoder's mask of 2 sentences with 5 positions")
    expected = visible(layout, layout, Band())
    for sentence, length in enumerate((5, 3)):
        compare(mask[sentence, :length], expected[sentence, :length], f"encoder, {length} tokens")
    mask = student.decoder_mask(5)
    shaped(mask, (5, 5), "the decoder's mask of 5 positions")
    compare(mask, visible(layout, layout, Band.causal())[0], "decoder")
    check_weights(student.masked_weights)


def compare(mask, expected, which):
    """Name the first pair of positions that is wrong."""
    must(mask.dtype == torch.bool, f"{which}: the mask is of type {mask.dtype}, not torch.bool")
    inverted = "the mask is inverted: True means that a query may attend to a key"
    must(not torch.equal(mask, ~expected), f"{which}: {inverted}")
    for query, key in (mask != expected).nonzero().tolist():
        allowed = expected[query, key]
        why = "later" if which == "decoder" else "padding"
        must(allowed, f"{which}: position {query} may attend to position {key}, which is {why}")
        must(False, f"{which}: position {query} must be able to attend to position {key}")


def check_weights(masked_weights):
    """Compare with the package's attention weights."""
    torch.manual_seed(1)
    q, k = torch.randn(2, 1, 4, 8), torch.randn(2, 1, 6, 8)
    mask = torch.rand(2, 4, 6) < 0.5
    mask[:, :, 0] = True
    weights = masked_weights((q @ k.transpose(-2, -1))[:, 0] / 8**0.5, mask)
    shaped(weights, (2, 4, 6), "the matrix of weights")
    leak = weights[~mask].abs().max()
    must(leak == 0, f"a forbidden key has the weight {leak:.3f}, not 0: are its scores −∞?")
    total = weights.sum(-1).flatten()[0]
    must(
        abs(total - 1) < 1e-4,
        f"the weights of a query sum to {total:.2f}, not 1: apply the mask before the softmax",
    )
    close(weights, attention_weights(q, k, mask)[:, 0], "the matrix of weights")
