# %% [markdown]
# # 13. Machine translation: BPE, training, checkpoint averaging, BLEU
#
# *Sections 5.1, 6.1 and all previous chapters*
#
# **The paper's claim.** The big model reaches 28.4 BLEU from English to German, two more than the
# best ensembles before it. The base model reaches 27.3 at a seventh of the cost.
#
# This chapter trains a small translation model, English to German, from raw sentences. The
# sentences are generated from the words in the first cell, so no download is needed. With your own
# files only that cell changes. The training takes half a minute, because the sentences are short
# and the network is tiny.

# %%
import random
import tempfile
from collections import Counter
from inspect import getsource
from itertools import pairwise
from pathlib import Path

import torch
from matplotlib import pyplot as plt

from transept import ModelConfig, Transducer, Transformer
from transept.checkpoint import WEIGHTS, Bundle, average, load_weights, weights_of, write_directory
from transept.evaluation.conventions import sacre_bleu
from transept.model.packing import Tokens, pad_rows
from transept.runtime.device import Runtime
from transept.text.tokenizer import EOS_ID
from transept.text.training import train_tokenizer
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

torch.manual_seed(1)
torch.set_num_threads(1)

# %% [markdown]
# ## Text
#
# About forty words are enough for an interesting task. German marks subject and object by the
# endings of articles and adjectives (*der alte Mann*, but *den alten Mann*). An adverb at the front
# moves the subject behind the verb. The participle is at the end: *The old man has seen the dog*
# is *Der alte Mann hat den Hund gesehen*.

# %%
NOUNS = {
    "man": ("der", "Mann"), "dog": ("der", "Hund"), "king": ("der", "König"),
    "woman": ("die", "Frau"), "cat": ("die", "Katze"), "queen": ("die", "Königin"),
    "child": ("das", "Kind"), "horse": ("das", "Pferd"), "book": ("das", "Buch"),
}  # fmt: skip
ADJECTIVES = {"": "", "old": "alt", "small": "klein", "good": "gut", "new": "neu"}
VERBS = {
    ("sees", "see", "seen"): ("sieht", "gesehen"),
    ("finds", "find", "found"): ("findet", "gefunden"),
    ("looks for", "look for", "looked for"): ("sucht", "gesucht"),
    ("loves", "love", "loved"): ("liebt", "geliebt"),
    ("paints", "paint", "painted"): ("malt", "gemalt"),
}
ADVERBS = {"": "", "today": "heute", "often": "oft", "now": "jetzt"}


def noun_phrase(chance, case):
    """English and German; only masculine nouns show their case."""
    noun, (article, german) = chance.choice([*NOUNS.items()])
    adjective, stem = chance.choice([*ADJECTIVES.items()])
    object_ = case == "object" and article == "der"
    words = ["den" if object_ else article, stem and stem + ("en" if object_ else "e"), german]
    return " ".join(filter(None, ["the", adjective, noun])), " ".join(filter(None, words))


def sentence(chance):
    """A sentence in English and in German."""
    (subject, subjekt), (object_, objekt) = (noun_phrase(chance, c) for c in ("subject", "object"))
    (now, plain, past), (jetzt, partizip) = chance.choice([*VERBS.items()])
    adverb, adverb_ = chance.choice([*ADVERBS.items()])
    kind = chance.choice(["plain", "perfect", "negative"])
    verb, ending = ("hat", partizip) if kind == "perfect" else (jetzt, "")
    ending = "nicht" if kind == "negative" else ending
    english = {"plain": now, "perfect": f"has {past}", "negative": f"does not {plain}"}[kind]
    front = [adverb_, verb, subjekt] if adverb else [subjekt, verb]
    said = [adverb, subject, english, object_], [*front, objekt, ending]
    source, target = (" ".join(filter(None, words)) for words in said)
    return f"{source[0].upper()}{source[1:]}.", f"{target[0].upper()}{target[1:]}."


chance = random.Random(1)
pairs = [*dict.fromkeys(sentence(chance) for _ in range(12_000))]
train, test = pairs[:-200], pairs[-200:]
print(f"{len(train):,} pairs for training, {len(test)} for the test")
for source, target in test[:4]:
    print(f"  {source:48} {target}")
assert not {source for source, _ in train} & {source for source, _ in test}

# %% [markdown]
# ## Byte-pair encoding
#
# **Byte-pair encoding** (BPE) starts with single characters and repeatedly merges the most frequent
# pair of neighbours. Frequent words become one token, rare words are split into **subwords**, and
# no word is unknown. Its first merges, by hand:

# %%
counts = Counter(word for pair in train for text in pair for word in text.split())
words = {tuple(f"▁{word}"): count for word, count in counts.items()}
for _ in range(8):
    pairs_of = Counter()
    for word, count in words.items():
        for neighbours in pairwise(word):
            pairs_of[neighbours] += count
    (left, right), count = pairs_of.most_common(1)[0]
    print(f"{left:>4} + {right:4} → {left + right:6} {count:7,} times")
    merged = {}
    for word, n in words.items():
        text = " ".join(word).replace(f"{left} {right}", left + right)
        merged[tuple(text.split())] = n
    words = merged
assert count > 1000

# %% [markdown]
# The package uses the sentencepiece library. Both languages share the vocabulary, as in section
# 5.1. Decoding restores the text exactly:

# %%
tokenizer = train_tokenizer((text for pair in train for text in pair), vocab_size=500)
for text in (*test[0], "Übermorgen?"):
    ids = tokenizer.encode(text)
    print(" ".join(tokenizer.pieces(text)))
    assert tokenizer.decode(ids) == text

# %% [markdown]
# ## Training
#
# The sentences of a batch are sampled at random here. The package's data loader packs them
# ([chapter 10](10_batching_and_packing.py)) and can resume within an epoch.

# %%
sources = [[*ids, EOS_ID] for ids in tokenizer.encode_batch([source for source, _ in train])]
targets = [[*ids, EOS_ID] for ids in tokenizer.encode_batch([target for _, target in train])]


def tokens(rows):
    """Sentences as the network reads them, without padding."""
    return Tokens.padded(pad_rows(rows, 0), pad_id=0).without_padding()


config = ModelConfig(vocab_size=500, n_layers=2, d_model=64, d_ff=256, n_heads=4, dropout=0.0)
model = Transformer(config)
update = Update(
    model,
    adam=make_adam(model, AdamConfig()),
    schedule=Schedule(config.d_model, warmup_steps=100),
    loss=Loss(label_smoothing=0.1, pad_id=0),
    runtime=Runtime.choose("cpu"),
    seed=1,
)
print(f"{model.n_parameters():,} parameters")

# %% [markdown]
# The loop writes five **checkpoints**: model directories, with the sha256 of each file. The paper
# averages its last five.

# %%
steps, size = 300, 64
folder = Path(tempfile.mkdtemp())
perplexities = []
for step in range(1, steps + 1):
    chosen = chance.sample(range(len(train)), size)
    batch = MicroBatch(tokens([sources[i] for i in chosen]), tokens([targets[i] for i in chosen]))
    values = update(step, [batch], n_target_tokens=len(batch.target.ids))
    perplexities.append(values.nll.exp().item())
    if step > steps - 100 and step % 20 == 0:
        weights = {WEIGHTS: weights_of(model)}
        write_directory(folder / f"step-{step}", tensors=weights, texts={}, about={"step": step})
print(f"perplexity {perplexities[0]:.0f} at first, {perplexities[-1]:.2f} at the end")
assert perplexities[-1] < 2

# %%
# Figure: Perplexity in 300 steps of training, on a logarithmic scale.
_, axis = plt.subplots(figsize=(7.2, 2.4))
axis.semilogy(perplexities, linewidth=1)
axis.set(xlabel="step", ylabel="perplexity per token")

# %% [markdown]
# ## Checkpoint averaging
#
# The mean of the weights of the last checkpoints is usually better than any of them, because it
# averages out the noise of the last steps:
#
# $$\bar w = \frac{1}{n} \sum_{i=1}^{n} w_i$$

# %%
print(getsource(average))

# %%
checkpoints = [Bundle.open(path) for path in sorted(folder.iterdir())]
load_weights(model, average(checkpoints), origin=folder)
translator = Transducer([model.eval()], tokenizer, tokenizer)
print(f"the mean of {len(checkpoints)} checkpoints")
assert len(checkpoints) == 5

# %% [markdown]
# ## Translation and BLEU
#
# `translate` uses the paper's beam search, the subject of [the next chapter](14_beam_search.py).
# **BLEU** compares the translations of a whole test set with references. It counts how many of
# their n-grams, for $n$ from 1 to 4, occur in the references (precision $p_n$), and penalizes
# output that is too short (brevity penalty $\text{BP}$, with output length $c$ and reference length
# $r$):
#
# $$\text{BLEU} = \text{BP} \cdot \exp\left(\frac{1}{4} \sum_{n=1}^{4} \log p_n\right) \qquad
# \text{BP} = \min(1, e^{1 - r/c})$$

# %%
texts, references = zip(*test, strict=True)
greedy = translator.translate(texts, beam_size=1)
beam = translator.translate(texts)  # beam 4, α = 0.6: the paper's
for (source, target), result in list(zip(test, beam, strict=True))[:8]:
    print("=" if result.text == target else "≠", f"{source:48} {result.text}")

# %%
bleu = sacre_bleu()
for name, results in (("greedy", greedy), ("beam 4", beam)):
    said = [result.text for result in results]
    exact = sum(ours == theirs for ours, theirs in zip(said, references, strict=True))
    print(f"{name}: {exact} of {len(test)} exactly correct, {bleu.measure(said, references)}")
assert exact > 150

# %% [markdown]
# BLEU depends on the tokenization of the text. A score is comparable only with scores of the same
# convention, which the signature at the end of the line records.
#
# ## Attention maps
#
# These are the heads of the encoder-decoder attention in the last layer. Rows are the words that
# the decoder writes, columns are the source words that it attends to:

# %%
right = [r for r, (_, target) in zip(beam, test, strict=True) if r.text == target]
seen = max(right, key=lambda r: len(r.text.split()))
attention = translator.attend(seen.source, seen.text).joined()

weights = attention.cross.weights
print("layers, heads, written words, read words:", tuple(weights.shape))
assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-4)

# %%
# Figure: Encoder-decoder attention in the last layer. A stronger colour is a larger weight.
_, axes = plt.subplots(1, 4, figsize=(7.2, 2.6), sharey=True)
for head, axis in enumerate(axes):
    axis.imshow(weights[-1, head].numpy(), vmin=0, vmax=1)
    axis.set_xticks(range(weights.shape[-1]), attention.cross.keys.words, rotation=90)
    axis.set_yticks(range(weights.shape[-2]), attention.cross.queries.words)
    axis.set_title(f"head {head + 1}")

# %% [markdown]
# Consider the articles. English *the* has no gender. The step that writes *der*, *die*, *das* or
# *den* must find the noun of the article, and whether it is the subject. An attention map shows
# which words a head reads. It does not explain why the model chose its output.
#
# ## Beyond this example
#
# A practical translation model needs more text, a larger network, and time. The [guide to
# training](../guides/train.md) does the same with your own files. The [guide to reproducing the
# paper](../guides/reproduce.md) does it with the paper's text.
