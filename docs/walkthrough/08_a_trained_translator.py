# %% [markdown]
# # 8. A trained translator
#
# *Section 6, and the paper's appendix*
#
# The networks of the last two chapters were toys. The one that comes with transept has read 1.9
# million sentences of parliament debates and of everyday talk, for eleven minutes on one GPU: four
# layers of width 256 on each side, a seventh of the paper's base model. It is small enough to be
# looked into on a laptop, and good enough that there is something to see.

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
# ## One meaning, several orders
#
# In German, *heute* can stand almost anywhere. Nobody told the network, but it has seen all of
# these orders. So its n best outputs are the same words in different orders, with scores (log P /
# lp) that are close together.

# %%
outputs = model.translate(TEXTS[5], n_best=4).outputs
for output in outputs:
    print(f"{output.score:7.2f}  {output.text}")
assert {*outputs[0].text.lower().split()} == {*outputs[1].text.lower().split()}

# %% [markdown]
# ## How sure it is
#
# `score` asks the opposite question: how probable is a given translation, piece by piece? Once
# *le·hn·te* has begun, its end is certain, and so is the *ab* that belongs to it, further on.
# The network hesitates only where it must choose: which verb, and *das Darlehen* or *den Kredit*.

# %%
known = model.score("The bank refused the loan.", "Die Bank lehnte das Darlehen ab.")
p = torch.tensor(known.token_log_probabilities).exp()
_, axis = plt.subplots(figsize=(7.2, 2.2))
axis.bar(range(len(p)), p.tolist(), color="tab:purple")
axis.set_xticks(range(len(p)), known.tokens, rotation=45)
axis.set(ylabel="p(piece | before, source)", ylim=(0, 1))
chance = dict(zip(known.tokens, p.tolist(), strict=True))
assert chance["▁das"] < chance["▁le"] < chance["▁ab"]

# %% [markdown]
# No probability reaches 1: label smoothing taught the network to leave a tenth to all the other
# pieces. This does not harm a search, but it harms random sampling. At a temperature of 1 each step
# has some chance to pick nonsense. At a higher temperature there is nothing but nonsense.

# %%
for temperature in (0.3, 1.0, 1.5):
    drawing = SamplingConfig(temperature=temperature, seed=1)
    drawn = model.translate(TEXTS[9], sampling=drawing, n_best=3, max_length_extra=5)
    for output in drawn.outputs:
        print(f"T {temperature}  {output.text[:90]}")

# %% [markdown]
# ## What the table of words knows
#
# To the network, a word is nothing but a row of one table. Training has moved the rows of words
# together that are used alike: countries, institutions, inflections, conjunctions.

# %%
table = F.normalize(model.model.source_embedding.weight.detach(), dim=-1)
pieces = model.source_tokenizer.pieces_of(range(model.source_tokenizer.vocab_size))
nearest = {}
for word in ("▁Germany", "▁Commission", "▁not", "▁he", "▁big", "▁Jahr", "▁weil"):
    found = (table @ table[pieces.index(word)]).topk(7).indices.tolist()
    nearest[word] = [pieces[i] for i in found if pieces[i] != word][:5]
    print(f"{word:13} {'  '.join(nearest[word])}")
assert "▁Italy" in nearest["▁Germany"]
assert "▁obwohl" in nearest["▁weil"]

# %% [markdown]
# Both languages share the table, and yet *Germany* and *Deutschland* are not neighbours: nothing in
# training asks for that. Translation happens between the stacks, not in the table.
#
# ## What the encoder's heads do
#
# How much weight does each head give to the word before, to the word itself, to the one after it,
# and to the end of the sentence? The mean over all the sentences above:

# %%
attentions = [model.attend(result.source, result.text).joined() for result in results]


def habits(map_):
    """Mean weights on the word before, itself, the next, and the end: layer by head by habit."""
    w = map_.weights
    offsets = [w.diagonal(offset, -2, -1).mean(-1) for offset in (-1, 0, 1)]
    return torch.stack([*offsets, w[..., -1].mean(-1)], dim=-1)


mean = torch.stack([habits(attention.encoder) for attention in attentions]).mean(0)
_, axes = plt.subplots(1, 4, figsize=(7.2, 2.2), sharey=True)
for habit, axis in enumerate(axes):
    axis.imshow(mean[..., habit].numpy(), vmin=0, vmax=1)
    axis.set_title(("the word before", "itself", "the next", "the end")[habit], fontsize=9)
    axis.set_xticks(range(4), range(1, 5))
    axis.set_yticks(range(4), range(1, 5))
    axis.set_xlabel("head")
axes[0].set_ylabel("layer")
before, after = mean[0, :, 0].max(), mean[0, :, 2].max()
print(f"in layer 1 one head gives {before:.0%} to the word before, one {after:.0%} to the next")
assert before > 0.8
assert after > 0.8

# %% [markdown]
# In the first layer, one head has learnt to look back by one word, and another to look ahead by
# one. These are the relative offsets for which section 3.5 chose sinusoids, and nobody told the
# network to use them. In higher layers, where a head looks depends more on the meaning. A head that
# has nothing to say looks at the end symbol.
#
# ## How the decoder keeps its place
#
# Here are two heads of the decoder's attention to the source, in the first layer and in the last:

# %%
seen = attentions[5].cross
_, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
for (layer, head), axis in zip(((0, 0), (3, 3)), axes, strict=True):
    axis.imshow(seen.weights[layer, head].numpy(), vmin=0, vmax=1)
    axis.set_xticks(range(len(seen.keys.words)), seen.keys.words, rotation=90)
    axis.set_yticks(range(len(seen.queries.words)), seen.queries.words)
    axis.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9)


def reads(layer, head, word):
    """The source word that a head reads most when this word is written."""
    row = seen.weights[layer, head, seen.queries.words.index(word)]
    return seen.keys.words[row.argmax()]


for word in ("Mann", "nicht", "gesehen"):
    print(f"{word:8} layer 1: {reads(0, 0, word):6} layer 4: {reads(3, 3, word)}")
assert [reads(0, 0, word) for word in ("Mann", "gesehen")] == ["old", "not"]
assert [reads(3, 3, word) for word in ("Mann", "gesehen")] == ["man", "seen"]

# %% [markdown]
# The decoder's input is the word that was written *last*. So the first layer looks at the source of
# that word: before it writes *Mann*, it reads *old*, because *alten* has just been written. From
# there the layers work out what comes next, and the last layer reads it: *man*. This is the
# alignment that the [parser](../parsing.md) has so much trouble finding.
#
# ## How far to search
#
# A wider beam finds outputs to which the model gives a higher score. With a model that is sure of
# itself, a beam of two is almost always enough. The paper's four are on the safe side.

# %%
scores = {}
for beam_size in (1, 2, 4, 8):
    found = model.translate(TEXTS, beam_size=beam_size)
    scores[beam_size] = sum(one.score for one in found) / len(found)
    print(f"beam {beam_size}: mean score {scores[beam_size]:.4f}")
assert scores[4] > scores[1]

# %% [markdown]
# ## Where it fails
#
# It is a small network that sees one sentence at a time. It takes a doctor for a man, as in most of
# what it has read. It takes the bank of a river for a bank with accounts. It loses the cat
# altogether. And it leaves out *sequence transduction*, which is no subject for a parliament.

# %%
for text in (
    "The bank of the river was steep.",
    "My grandmother's cat sleeps on the sofa all day long.",
    "The dominant sequence transduction models are based on complex recurrent networks.",
):
    print(f"{text}\n    {model.translate(text).text}")

# %% [markdown]
# What helps is what helped the paper: more text, more width, more time. The
# [results](../results.md) show what this recipe reaches at other sizes, and the
# [guide](../guides/train.md) shows how to train this very model further on your own text.
