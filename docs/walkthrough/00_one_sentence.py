# %% [markdown]
# # 0. One sentence through Figure 1
#
# *Figures 1 and 2 of [Attention Is All You Need](https://arxiv.org/abs/1706.03762)*
#
# This page follows one sentence through the whole network, from its subwords to its translation.
# The network is the bundled model `en-de`: a Transformer with eight encoder layers and three
# decoder layers. On the site, it runs in your browser, as 440 lines of JavaScript without
# dependencies: the subword tokenizer, the encoder, the cached decoder and beam search. Type a
# sentence, and the figures and panels of this page show its numbers.
#
# <!-- live: form -->
#
# ## Figure 1
#
# <!-- live: figure-1 -->
#
# The **encoder** (left) reads the sentence, all positions at once. The **decoder** (right) is
# autoregressive: it writes one subword per step, and reads the encoder's output and the subwords
# that it has written. Between the first and the last box, a sequence is always a matrix with one
# row per subword and d_model = 256 columns.
#
# Each section below shows a part of the network, and the same in Python with the package. The
# following chapters explain the parts one by one.

# %%
import torch

import transept
from transept.api.search_tree import search_tree
from transept.decoding.config import SearchConfig
from transept.model.attention import record_attention

SENTENCE = "The old man reads a book in the garden."
model = transept.load("en-de", engine="native", device="cpu")
network, tokenizer = model.model, model.source_tokenizer
output = model.translate(SENTENCE, raw=True).outputs[0]
print(f"{output.text}   log P = {output.log_probability:.2f}")
assert output.text == "Der alte Mann liest ein Buch im Garten."

# %% [markdown]
# ## Subwords
#
# The vocabulary has 8,000 **subwords** that both languages share. Frequent words are one subword,
# and rare words are several. A dot is the space before a word. The end symbol is `</s>`.
#
# <!-- live: subwords -->

# %%
source_ids = [*tokenizer.encode(SENTENCE), tokenizer.eos_id]
target_ids = [*tokenizer.encode(output.text), tokenizer.eos_id]
print(*tokenizer.pieces_of(source_ids))
print(*source_ids)
assert tokenizer.decode(source_ids) == SENTENCE

# %% [markdown]
# ## Embedding plus positional encoding
#
# Each subword is a row of the **embedding matrix**, multiplied by √d_model. Attention does not see
# the order of its inputs, so a **positional encoding** is added: sinusoids of the position with
# different wavelengths. The first columns have the shortest wavelengths.
#
# <!-- live: embedding -->

# %%
source, target = torch.tensor([source_ids]), torch.tensor([target_ids])
embedding = network.source_embedding(source[0])
encoding = network.source_positions.at(torch.arange(len(source_ids)))
x = embedding + encoding
print("embedding", tuple(embedding.shape), " positional encoding", tuple(encoding.shape))
assert x.shape == (len(source_ids), network.config.d_model)

# %% [markdown]
# ## Figure 2: attention
#
# Positions exchange information only by **scaled dot-product attention**. A position's query is
# compared with the keys of all positions. The softmax of these scores gives weights, and the output
# is the weighted mean of the values. In **multi-head attention**, four heads do this with different
# projections.
#
# <!-- live: figure-2 -->
#
# ## The heads of each layer
#
# Each head of each layer has its own attention weights. A row shows the positions that a position
# attends to. Some heads look at the previous or the next word, others at words with a related
# meaning, and many at the end symbol, because a softmax cannot give no weight at all.
#
# <!-- live: heads -->

# %%
with torch.no_grad(), record_attention(network) as weights:
    logits = network(source, target)
for name in ("encoder.layers.0.self_attention", "decoder.layers.0.source_attention"):
    print(f"{name:34}", tuple(weights[name].shape), " sentences, heads, queries, keys")
for each in weights.values():
    assert torch.allclose(each.sum(dim=-1), torch.ones(()), atol=1e-5)

# %% [markdown]
# ## The decoder, step by step
#
# At each step, the last vector of the decoder is compared with all rows of the embedding matrix.
# The **softmax** turns these 8,000 numbers into the probabilities of the next subword. A search
# that takes the likeliest at each step is called **greedy**. For *The old man reads a book in the
# garden*, *ein* has nine tenths of the probability at step 7. The second is *im*, which begins
# another word order.
#
# <!-- live: softmax -->

# %%
logits[..., network.config.pad_id] = -torch.inf
p = logits[0].softmax(dim=-1)
print("probabilities", tuple(p.shape))
of_output = p[range(len(target_ids)), target_ids]
print("log P of the translation:", f"{of_output.log().sum():.2f}")
assert tokenizer.pieces_of(p[6].topk(2).indices.tolist()) == ["▁ein", "▁im"]
assert p[6].max() > 0.85
assert abs(of_output.log().sum() - output.log_probability) < 1e-3

# %% [markdown]
# ## The beam
#
# **Beam search** keeps the four likeliest hypotheses instead of one. A finished hypothesis is
# scored with its log P, divided by a length penalty, and the search ends when no unfinished one can
# score higher. The two best translations of *The old man reads a book in the garden* differ in the
# position of *im Garten*.
#
# <!-- live: beam -->

# %%
tree = search_tree(model, SENTENCE, SearchConfig(beam_size=4, length_penalty=0.6))
finished = [one for step in tree.steps for one in step if one.state == "finished"]
for one in sorted(finished, key=lambda one: -one.normalized)[:3]:
    print(f"{one.normalized:6.2f}  {one.text}")
assert max(finished, key=lambda one: one.normalized).id == tree.winner

# %% [markdown]
# ## The program
#
# The JavaScript is written to be read, with the paper's symbols as names:
# `docs/live/transformer.js` (section 3), `tokenizer.js` (5.1), `search.js` (6.1) and `weights.js`.
# A test compares it with the Python package: the subwords of 1,000 sentences, log-probabilities,
# and the outputs of beam search. A page that is opened as a file cannot load the model. To try it,
# build the site and serve it: `python -m http.server --directory build/docs/html`.
