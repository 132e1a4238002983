# %% [markdown]
# # 1. Encoder and decoder stacks
#
# *Sections 3 and 3.1 of [Attention Is All You Need](https://arxiv.org/abs/1706.03762)*
#
# A Transformer reads a sentence in one language and writes it in another. It has two stacks of
# layers. The **encoder** turns the source, a sequence of tokens, into one vector per token. The
# **decoder** writes the target from left to right; it is **autoregressive**. At each position it
# reads the tokens that it has written so far and the encoder's vectors, and returns a probability
# for each entry of the vocabulary. There is no recurrence: all positions of a sentence are computed
# at once. Positions exchange information only through *attention*, the subject of the next chapter.
#
# This walk-through does not implement the network a second time. It shows the package's own source,
# runs it, plots the result, and asserts the expected values. If a change to the package makes a
# page untrue, a test fails. Each chapter is a plain Python script, and a notebook.

# %%
from inspect import getsource

import torch

from transept import ModelConfig, Transformer
from transept.model.layers import PostNorm
from transept.model.transformer import DecoderLayer, Encoder, EncoderLayer

# %% [markdown]
# ## A small network
#
# The paper's base model has 6 layers and vectors of 512 numbers. Two layers with vectors of 64
# numbers are enough here. The code is the same. A token is an integer id: 1 ends a sentence, 0 pads
# the shorter rows of a batch, and the others are words or parts of words (**subwords**).

# %%
torch.manual_seed(0)
config = ModelConfig(vocab_size=100, n_layers=2, d_model=64, d_ff=256, n_heads=4)
model = Transformer(config).eval()

source_ids = torch.tensor([[17, 42, 8, 1], [23, 9, 1, 0]])
target_ids = torch.tensor([[5, 99, 31, 60, 1], [77, 12, 1, 0, 0]])
logits = model(source_ids, target_ids)

print("logits:", tuple(logits.shape), " two sentences, five positions, a vocabulary of 100")
assert logits.shape == (2, 5, 100)

# %% [markdown]
# `logits[:, i]` predict `target_ids[:, i]`. A softmax turns them into probabilities. Position *i*
# must not read the token that it predicts. Therefore the decoder's input is the target **shifted
# right** by one position, with a zero vector in front. You pass the unshifted target, and the
# network shifts it.
#
# ## The encoder layer
#
# An encoder layer has two sub-layers. First, self-attention mixes information between positions.
# Then a feed-forward network processes each position independently.

# %%
print(getsource(EncoderLayer.forward))

# %% [markdown]
# Each sub-layer has a **residual connection** around it: its output is added to its input. In the
# paper, **layer normalization** comes *after* the sum (post-norm):

# %%
print(getsource(PostNorm.forward))

# %% [markdown]
# The output of a layer is therefore normalized: each token's vector has mean 0 and variance 1
# (the learned scale and shift start as the identity).

# %%
states = model.encode(source_ids).states
print("encoder states:", tuple(states.shape), " eight positions on one flat axis")
mean, deviation = states.mean(-1), states.std(-1, correction=0)
print(f"means differ from 0 by at most {mean.abs().max():.0e},", end=" ")
print(f"deviations from 1 by at most {(deviation - 1).abs().max():.0e}")
assert mean.abs().max() < 1e-5
assert torch.allclose(deviation, torch.ones(8), atol=1e-3)

# %% [markdown]
# Many later models normalize a sub-layer's *input* instead: `x + Sublayer(LayerNorm(x))`
# (pre-norm). Deep stacks then train more easily. The output of the stack is not normalized, so it
# needs one more layer normalization at the end. The option `norm="pre"` selects this form. It is
# not the paper's.
#
# The encoder is a loop over its layers:

# %%
print(getsource(Encoder.forward))

# %% [markdown]
# ## The decoder layer
#
# A decoder layer has three sub-layers. The first is **masked self-attention**, which must not
# attend to later positions. The second is **encoder-decoder attention**, by which the decoder reads
# the source. The feed-forward network comes last.

# %%
print(getsource(DecoderLayer.forward))

# %% [markdown]
# Does the decoder really ignore later positions? Change the last word of the first target, before
# its end symbol. Only the logits after the word may change. The logits up to the word, including
# its own, must stay the same.

# %%
other = target_ids.clone()
other[0, 3] = 50
difference = (model(source_ids, other) - logits).abs().amax(dim=-1)[0]
print("largest change of a logit, per position:", [round(d, 4) for d in difference.tolist()])
assert difference[:4].max() < 1e-5 < difference[4]

# %% [markdown]
# Does padding change the result? The second sentence gives the same logits without the first one:

# %%
alone = model(source_ids[1:, :3], target_ids[1:, :3])
print(f"alone and in a batch differ by {(alone[0] - logits[1, :3]).abs().max():.1e}")
assert torch.allclose(alone[0], logits[1, :3], atol=1e-5)

# %% [markdown]
# ## The number of parameters
#
# The weights of a layer can be counted by hand. Attention has four matrices of d_model × d_model
# and no biases. The feed-forward network has two matrices and two biases. A layer normalization
# has a scale and a shift.

# %%
with torch.device("meta"):  # the shapes, without the memory
    base = Transformer(ModelConfig.preset("base", vocab_size=37_000))

d, ff, vocabulary = 512, 2048, 37_000
attention, norm = 4 * d * d, 2 * d
feed_forward = (d * ff + ff) + (ff * d + d)
encoder_layer = attention + feed_forward + 2 * norm
decoder_layer = 2 * attention + feed_forward + 3 * norm
by_hand = vocabulary * d + 6 * (encoder_layer + decoder_layer)

print(f"base: {base.n_parameters():,} parameters; by hand {by_hand:,}")
assert base.n_parameters() == by_hand

# %% [markdown]
# The paper reports 65 million, with a vocabulary of "about 37,000" tokens.
