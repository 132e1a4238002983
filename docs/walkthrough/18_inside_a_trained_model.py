# %% [markdown]
# # 18. Inside a trained translation model: attention heads and embeddings
#
# *Section 6, and the paper's appendix*
#
# **The paper's claim.** Attention can be looked at. Heads learn different tasks, and many of them
# are related to the structure of the sentence.
#
# The bundled model `en-de` was trained on 1.8 million sentences of parliament debates, news and
# everyday language, for five minutes on one GPU. A larger model, its teacher, had translated most
# of them. It has eight encoder layers and three decoder layers with $d_{\text{model}} = 256$, and
# less than a fifth of the parameters of the paper's base model.

# %%
import torch
from matplotlib import pyplot as plt
from torch.nn import functional as F

import transept
from transept import SamplingConfig
from transept.api.card import Card
from transept.shelf import find_model

model = transept.load("en-de", engine="native")
card = Card.load(find_model("en-de"))
print(card.title)
print(f"{card.parameters:,} parameters, {card.steps:,} steps")
for result in card.results:
    print(f"  {result.test:14} {result.name:10} {result.value:.1f}")

# %%
TEXTS = [
    "The weather is nice today, so we want to go for a walk.",
    "My sister lives in Berlin and works as a doctor.",
    "The committee has not yet decided whether the proposal should be adopted.",
    "If I had known that you were coming, I would have baked a cake.",
    "He opened the door and asked the old man to come in.",
    "I have not seen the old man today.",
    "Where did you buy this book?",
    "The children are playing in the garden.",
    "Nobody knows what will happen tomorrow.",
    "She gave her brother the letter that she had found.",
    "We cannot accept this without a debate.",
]
results = model.translate(TEXTS)
for result in results:
    print(f"{result.source}\n    {result.text}")
assert results[5].text == "Ich habe den alten Mann heute nicht gesehen."

# %% [markdown]
# ## n-best translations
#
# In German, *heute* can occur at several positions of the sentence. The second best output has the
# same words in another order. Its score (log P / lp) is lower: the teacher wrote the same order
# again and again, and the model learned it.

# %%
outputs = model.translate(TEXTS[5], n_best=4).outputs
for output in outputs:
    print(f"{output.score:7.2f}  {output.text}")
assert {*outputs[0].text.lower().split()} == {*outputs[1].text.lower().split()}

# %% [markdown]
# ## Confidence
#
# `score` returns the probability of a given translation, subword by subword. The separated prefix
# *ab* at the end is almost certain after *lehnte*. The network is less certain where it must
# choose: it would rather write *den Kredit* than *das Darlehen*.

# %%
known = model.score("The bank refused the loan.", "Die Bank lehnte das Darlehen ab.")
p = torch.tensor(known.token_log_probabilities).exp()
chance = dict(zip(known.tokens, p.tolist(), strict=True))
assert chance["▁das"] < chance["▁Dar"] < chance["▁ab"]

# %%
# Figure: The probability of each subword of the translation, given those before it.
_, axis = plt.subplots(figsize=(7.2, 2.2))
axis.bar(range(len(p)), p.tolist())
axis.set_xticks(range(len(p)), known.tokens, rotation=45)
axis.set(ylabel="p(subword | prefix, source)", ylim=(0, 1))

# %% [markdown]
# No probability reaches 1: with **label smoothing**, the network learned to leave a tenth to all
# other subwords. This does not harm a search, but it harms random **sampling**. At a temperature of
# 1, each step may sample an unsuitable subword. At a higher temperature the output is nonsense.

# %%
for temperature in (0.3, 1.0, 1.5):
    drawing = SamplingConfig(temperature=temperature, seed=1)
    drawn = model.translate(TEXTS[9], sampling=drawing, n_best=3, max_length_extra=5)
    for output in drawn.outputs:
        print(f"T {temperature}  {output.text[:90]}")

# %% [markdown]
# ## The embedding matrix
#
# Each subword is a row of the **embedding matrix**. After training, words that are used in similar
# ways have similar embeddings: countries, institutions, inflections, conjunctions.

# %%
table = F.normalize(model.model.source_embedding.weight.detach(), dim=-1)
pieces = model.source_tokenizer.pieces_of(range(model.source_tokenizer.vocab_size))
nearest = {}
for word in ("▁Germany", "▁Commission", "▁not", "▁he", "▁big", "▁Jahr", "▁weil"):
    found = (table @ table[pieces.index(word)]).topk(7).indices.tolist()
    nearest[word] = [pieces[i] for i in found if pieces[i] != word][:5]
    print(f"{word:13} {'  '.join(nearest[word])}")
assert {"▁Spain", "▁Deutschland"} <= {*nearest["▁Germany"]}
assert "▁obwohl" in nearest["▁weil"]

# %% [markdown]
# Both languages share the matrix, and *Germany* and *Deutschland* are neighbours. The training does
# not require that: most words are not near their translations. Translation happens in the stacks,
# not in the embedding matrix.
#
# ## The heads of the encoder
#
# How much weight does each head give to the previous word, to the word itself, to the next one,
# and to the end of the sentence? The plot shows the mean over all sentences above:

# %%
attentions = [model.attend(result.source, result.text).joined() for result in results]


def habits(map_):
    """Mean weights on the previous word, itself, the next, and the end: layer by head by habit."""
    w = map_.weights
    offsets = [w.diagonal(offset, -2, -1).mean(-1) for offset in (-1, 0, 1)]
    return torch.stack([*offsets, w[..., -1].mean(-1)], dim=-1)


mean = torch.stack([habits(attention.encoder) for attention in attentions]).mean(0)
before, after = mean[2, :, 0].max(), mean[2, :, 2].max()
print(f"a head of layer 3 gives {before:.0%} to the previous word")
print(f"a head of layer 3 gives {after:.0%} to the next word")
assert before > 0.9
assert after > 0.9

# %%
# Figure: The mean weight by layer and head. A stronger colour is a larger weight.
_, axes = plt.subplots(1, 4, figsize=(7.2, 3.4), sharey=True)
for habit, axis in enumerate(axes):
    axis.imshow(mean[..., habit].numpy(), vmin=0, vmax=1)
    axis.set_title(("previous word", "itself", "next word", "end symbol")[habit], fontsize=9)
    axis.set_xticks(range(4), range(1, 5))
    axis.set_yticks(range(8), range(1, 9))
    axis.set_xlabel("head")
axes[0].set_ylabel("layer")

# %% [markdown]
# In the third layer, one head learned to attend to the previous word, and another one to the next.
# The paper chose a sinusoidal **positional encoding** so that a model can learn to attend by such
# relative positions (section 3.5). In higher layers, attention depends more on the meaning of the
# words, and some heads attend mostly to the end symbol.
#
# ## Encoder-decoder attention
#
# These are two heads of the encoder-decoder attention, in the first layer and in the last:

# %%
seen = attentions[5].cross


def reads(layer, head, word):
    """The source word that a head attends to most when this word is written."""
    row = seen.weights[layer, head, seen.queries.words.index(word)]
    return seen.keys.words[row.argmax()]


for word in ("Mann", "nicht", "gesehen"):
    print(f"{word:8} layer 1: {reads(0, 3, word):6} layer 3: {reads(2, 1, word)}")
assert [reads(0, 3, word) for word in ("Mann", "gesehen")] == ["old", "not"]
assert [reads(2, 1, word) for word in ("Mann", "gesehen")] == ["man", "seen"]

# %%
# Figure: Rows are the words that the decoder writes, columns are source words.
_, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
for (layer, head), axis in zip(((0, 3), (2, 1)), axes, strict=True):
    axis.imshow(seen.weights[layer, head].numpy(), vmin=0, vmax=1)
    axis.set_xticks(range(len(seen.keys.words)), seen.keys.words, rotation=90)
    axis.set_yticks(range(len(seen.queries.words)), seen.queries.words)
    axis.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9)

# %% [markdown]
# The decoder's input is the word that was written *last*. The first layer attends to the source of
# that word: before the decoder writes *Mann*, this head reads *old*, because *alten* was written
# last. The last layer attends to the source of the next word: *man*. This is the alignment that is
# hard to learn for the [parser](../parsing.md).
#
# ## Figures 3 to 5
#
# The paper draws attention as lines between words. The width of a line is the weight. `transept
# visualize` draws them for any model, as SVG or as an interactive page. These are the heads of
# layer 3 that read the previous word and the next one:

# %%
encoder = attentions[5].encoder
words = encoder.keys.words
chosen = [(2, int(mean[2, :, habit].argmax())) for habit in (0, 2)]
lines = [
    (n, query, key, encoder.weights[layer, head, query, key].item())
    for n, (layer, head) in enumerate(chosen)
    for query in range(len(words))
    for key in range(len(words))
]
print(f"{len(lines)} lines, whose weights sum to {sum(line[3] for line in lines):.1f}")
assert abs(sum(weight for *_, weight in lines) - 2 * len(words)) < 0.1

# %%
# Figure: Encoder self-attention as lines, from the query (top) to the keys (bottom).
_, axes = plt.subplots(1, 2, figsize=(9.0, 2.6))
for n, query, key, weight in lines:
    axes[n].plot((query, key), (1, 0), color=f"C{n}", linewidth=3 * weight, alpha=min(1, weight))
for axis, (layer, head) in zip(axes, chosen, strict=True):
    for at, word in enumerate(words):
        axis.text(at, 1.05, word, rotation=90, ha="center", va="bottom")
        axis.text(at, -0.05, word, rotation=90, ha="center", va="top")
    axis.set(ylim=(-0.6, 1.6))
    axis.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9)
    axis.axis("off")

# %% [markdown]
# ## Where it fails
#
# It is a small network that translates one sentence at a time. It translates an idiom word for
# word. It writes *der Kehle*, with the wrong article. And it confuses an invitation, *Einladung*,
# with an entry, *Einreise*. The two share their first subword.

# %%
for text in (
    "It is raining cats and dogs.",
    "My throat hurts, and I have had a fever since Wednesday.",
    "Invitation to the summer party",
):
    print(f"{text}\n    {model.translate(text).text}")

# %% [markdown]
# More text, a larger network and more training help, as in the paper. The [results](../results.md)
# show the scores of other sizes. The [guide to fine-tuning](../guides/fine-tune.md) shows how to
# **fine-tune** this model on your own text.
