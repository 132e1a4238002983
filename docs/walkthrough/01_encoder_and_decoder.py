# %% [markdown]
# # 1. Encoder and decoder stacks
#
# *Sections 3 and 3.1 of [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (Vaswani et
# al., 2017)*
#
# **The paper's claim.** Until 2017, translation models read a sentence word by word, with a
# recurrent network. The paper removes the recurrence. Its network, the Transformer, relates all
# words of a sentence to each other at once, by *attention*. It translates better than the models
# before it, and its training costs a fraction, because all positions are computed in parallel.
#
# The Transformer has two stacks of layers. The **encoder** turns a sentence of tokens
# $x = (x_1, \dots, x_n)$ into one vector per token. The **decoder** writes the translation
# $y = (y_1, \dots, y_m)$ from left to right. It is **autoregressive**: it predicts each token from
# the encoder's vectors and from the tokens that are already written.
#
# $$P(y \mid x) = \prod_{i=1}^{m} p(y_i \mid y_1, \dots, y_{i-1}, x)$$
#
# This walk-through does not implement the network a second time. It shows the source of the
# package, runs it, plots the result, and asserts the expected values. If a change to the package
# makes a page untrue, a test fails.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept import ModelConfig, Transformer
from transept.model.layers import PostNorm, PreNorm
from transept.model.packing import pad_rows
from transept.model.transformer import Decoder, DecoderLayer, Encoder, EncoderLayer
from transept.text.tokenizer import EOS_ID

translator = transept.load("en-de", engine="native")
model, tokenizer = translator.model, translator.source_tokenizer

# %% [markdown]
# ## One sentence
#
# `en-de` is the model that is bundled with the package. It is smaller than the paper's base model:
# its vectors have $d_{\text{model}} = 256$ numbers instead of 512. A sentence is split into tokens,
# words or parts of words (**subwords**). The network sees their numbers. Token 1 ends a sentence.

# %%
source, target = "The old man has not seen the dog.", "Der alte Mann hat den Hund nicht gesehen."
source_ids, target_ids = ([*tokenizer.encode(text), EOS_ID] for text in (source, target))
print(*tokenizer.pieces(source), "</s>")
print(*source_ids)

with torch.no_grad():
    memory = model.encode(torch.tensor([source_ids]))
    logits = model(torch.tensor([source_ids]), torch.tensor([target_ids]))
print("encoder states", tuple(memory.states.shape), "one vector of 256 numbers per token")
print("logits        ", tuple(logits.shape), "a number for each of 8,000 tokens at each position")
assert memory.states.shape == (10, 256)
assert logits.shape == (1, 11, 8000)

# %% [markdown]
# `logits[:, i]` predict token `i` of the target. A softmax turns them into probabilities. The
# network must not read the token that it predicts. Therefore the decoder's input is the target
# **shifted right** by one position, with a zero vector in front. You pass the unshifted target, and
# the network shifts it. In parallel, the decoder predicts each word of the translation from the
# words before it:

# %%
p = logits[0].softmax(-1)
for i, (piece, token) in enumerate(zip(tokenizer.pieces_of(target_ids), target_ids, strict=True)):
    print(f"p({piece:8} | x, {i} tokens before) = {p[i, token]:.2f}")
guessed = (p.argmax(-1) == torch.tensor(target_ids)).float().mean()
print(f"{guessed:.0%} of the tokens are the most probable ones")
assert guessed == 1

# %% [markdown]
# ## Residual connections and layer normalization
#
# A layer consists of sub-layers: attention, and a feed-forward network. Each sub-layer has a
# **residual connection** around it: its output is added to its input. In the paper, **layer
# normalization** follows the sum (*post-norm*):
#
# $$\text{LayerNorm}(x + \text{Dropout}(\text{Sublayer}(x)))$$
#
# Layer normalization works on each vector separately. It subtracts the mean $\mu$ of the vector,
# divides by its standard deviation $\sigma$, and applies a learned scale $g$ and shift $b$:
#
# $$\text{LayerNorm}(v) = g \odot \frac{v - \mu}{\sqrt{\sigma^2 + \epsilon}} + b$$

# %%
print(getsource(PostNorm))
print(getsource(PreNorm))

# %% [markdown]
# *Pre-norm* normalizes the input of a sub-layer instead. Most later models use it. It is an option
# here (`norm="pre"`), and [chapter 12](12_break_it_and_see.py) compares the two in training. The
# difference is visible before any training. With post-norm, the vectors have the same size after
# each layer. With pre-norm, each sub-layer adds to a sum that is never normalized, and the vectors
# grow with depth. A pre-norm stack therefore has one more layer normalization at its end.

# %%
sizes = {}
for norm in ("post", "pre"):
    torch.manual_seed(0)
    deep = Transformer(ModelConfig(vocab_size=100, n_layers=12, d_model=64, norm=norm)).eval()
    seen = sizes[norm] = []
    for layer in deep.encoder.layers:
        layer.register_forward_hook(lambda _, __, out, seen=seen: seen.append(out.std().item()))
    deep.encode(torch.randint(1, 100, (8, 20)))
assert max(abs(size - 1) for size in sizes["post"]) < 0.01
assert sizes["pre"][-1] > 1.5 * sizes["pre"][0]

# %%
# Figure: The size of the vectors after each of 12 untrained encoder layers.
_, axis = plt.subplots(figsize=(7.2, 2.4))
for norm, size in sizes.items():
    axis.plot(range(1, 13), size, "o-", label=f"{norm}-norm")
axis.set(xlabel="layer", ylabel="standard deviation", ylim=(0, None))
axis.legend()

# %% [markdown]
# ## The encoder
#
# An encoder layer has two sub-layers. In **self-attention**, the positions of the sentence exchange
# information. The feed-forward network then processes each position independently. The encoder is
# a loop over $N = 6$ such layers:

# %%
print(getsource(EncoderLayer))
print(getsource(Encoder))

# %% [markdown]
# Two names need an explanation. `mask` defines which positions may attend to which
# ([chapter 2](02_scaled_dot_product_attention.py)). `layout` describes the sentences of a batch.
# Here each sentence is a row, shorter rows are padded, and `layout` only reshapes.
# [Chapter 10](10_batching_and_packing.py) shows another arrangement.
#
# ## The decoder
#
# A decoder layer has three sub-layers. **Masked self-attention** must not attend to later
# positions. **Encoder-decoder attention** reads the source. The feed-forward network comes last.

# %%
print(getsource(DecoderLayer))
print(getsource(Decoder))

# %% [markdown]
# ## Two checks
#
# Does the decoder ignore later positions? Replace *nicht* in the target. Logits up to that position
# must stay the same, including its own. Later ones must change.

# %%
position = tokenizer.pieces_of(target_ids).index("▁nicht")
other = list(target_ids)
other[position] = tokenizer.encode("immer")[0]
with torch.no_grad():
    changed = (model(torch.tensor([source_ids]), torch.tensor([other])) - logits).abs()[0].amax(-1)
print("largest change of a logit:", [round(change, 3) for change in changed.tolist()])
assert changed[: position + 1].max() < 1e-3 < changed[position + 1 :].min()

# %% [markdown]
# Does **padding** change a result? A batch is a rectangle, so shorter sentences are filled up with
# token 0. Masks exclude it. The long sentence does not change the logits of the short one:

# %%
short = [*tokenizer.encode("The dog sleeps."), EOS_ID], [*tokenizer.encode("Der Hund."), EOS_ID]
sources, targets = (
    pad_rows([ids, others], 0) for ids, others in zip((source_ids, target_ids), short, strict=True)
)
print(sources)
with torch.no_grad():
    batch = model(sources, targets)[1, : len(short[1])]
    alone = model(torch.tensor([short[0]]), torch.tensor([short[1]]))[0]
print(f"alone and in a batch, the logits differ by at most {(alone - batch).abs().max():.0e}")
assert torch.allclose(alone, batch, atol=1e-3)
