# %% [markdown]
# # 1. The stacks
#
# *Sections 3 and 3.1*
#
# A Transformer reads a sentence in one language and writes it in another. It has two halves. The
# **encoder** turns the source, a row of tokens, into a row of vectors, as many as there are tokens.
# The **decoder** writes the target from left to right: at each place it looks at what it has
# written so far and at the encoder's vectors, and says how likely each entry of the vocabulary is
# to come next. There is no recurrence: all places of a sentence are computed at once. A place can
# learn of another only through *attention*, the subject of the next chapter.
#
# This walk-through does not write the network a second time. It shows the package's own source,
# runs it, plots the result, and asserts what should hold. If a change to the package makes a page
# untrue, a test fails. Each chapter is a plain Python script, and a notebook.

# %%
from inspect import getsource

import torch

from transept import ModelConfig, Transformer
from transept.model.layers import PostNorm
from transept.model.transformer import DecoderLayer, Encoder, EncoderLayer

# %% [markdown]
# ## A small network, and what it computes
#
# The paper's base model has 6 layers and vectors of 512 numbers. Two layers of 64 are enough here;
# the code is the same. Tokens are numbers: 1 ends a sentence, 0 pads the shorter rows of a
# batch, and the others are words or parts of words.

# %%
torch.manual_seed(0)
config = ModelConfig(vocab_size=100, n_layers=2, d_model=64, d_ff=256, n_heads=4)
model = Transformer(config).eval()

source_ids = torch.tensor([[17, 42, 8, 1], [23, 9, 1, 0]])
target_ids = torch.tensor([[5, 99, 31, 60, 1], [77, 12, 1, 0, 0]])
logits = model(source_ids, target_ids)

print("logits:", tuple(logits.shape), " two sentences, five places, a hundred words")
assert logits.shape == (2, 5, 100)

# %% [markdown]
# `logits[:, i]` predict `target_ids[:, i]`; a softmax turns them into probabilities. Place *i* must
# not simply read the answer. So the decoder's input is the target **shifted right** by one, with a
# zero vector in front. You pass the target as it should come out, and the network shifts it.
#
# ## What an encoder layer does
#
# An encoder layer has two sub-layers. First, self-attention mixes information between places. Then
# a small network works on each place by itself.

# %%
print(getsource(EncoderLayer.forward))

# %% [markdown]
# Each sub-layer has a **residual connection** around it: its output is added to its input. Here is
# the paper's form, with the layer norm *after* the sum:

# %%
print(getsource(PostNorm.forward))

# %% [markdown]
# So the numbers that leave a layer are always normalised: each token's vector has mean 0 and
# variance 1 (the norm's own scale and shift begin as the identity).

# %%
states = model.encode(source_ids).states
print("encoder states:", tuple(states.shape), " eight places on one flat axis")
mean, deviation = states.mean(-1), states.std(-1, correction=0)
print(f"no mean is farther from 0 than {mean.abs().max():.0e},", end=" ")
print(f"no deviation farther from 1 than {(deviation - 1).abs().max():.0e}")
assert mean.abs().max() < 1e-5
assert torch.allclose(deviation, torch.ones(8), atol=1e-3)

# %% [markdown]
# Today many people normalise a sub-layer's *input* instead: `x + Sublayer(LayerNorm(x))`. Deep
# stacks then train more easily. But nothing normalises the output of the stack, so it needs one
# more norm at the end. That is `norm="pre"`. It is an option here, not the paper's form.
#
# The encoder is no more than a loop over its layers:

# %%
print(getsource(Encoder.forward))

# %% [markdown]
# ## What a decoder layer does
#
# A decoder layer has three sub-layers. Its self-attention must not look ahead. The feed-forward
# network comes last. Between the two is attention to the encoder's output: this is how the decoder
# reads the source.

# %%
print(getsource(DecoderLayer.forward))

# %% [markdown]
# Does it really not look ahead? Change the last word of the first target, before its end symbol:
# only the logits after the word may change. The logits up to the word, its own included, may not.

# %%
other = target_ids.clone()
other[0, 3] = 50
difference = (model(source_ids, other) - logits).abs().amax(dim=-1)[0]
print("largest change of a logit, place by place:", [round(d, 4) for d in difference.tolist()])
assert difference[:4].max() < 1e-5 < difference[4]

# %% [markdown]
# And padding? The second sentence gives the same logits without its neighbour:

# %%
alone = model(source_ids[1:, :3], target_ids[1:, :3])
print(f"alone and in a batch differ by {(alone[0] - logits[1, :3]).abs().max():.1e}")
assert torch.allclose(alone[0], logits[1, :3], atol=1e-5)

# %% [markdown]
# ## How large it is
#
# A layer's weights can be counted by hand. Attention has four matrices of d_model × d_model and no
# biases; the feed-forward network has two matrices and two biases; a norm has a scale and a shift.

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
# The paper prints 65 million, from a vocabulary that it calls "about 37,000".
