# %% [markdown]
# # 7. Translation
#
# *Section 6, and all previous chapters*
#
# This chapter trains a small translation model, English to German, from raw sentences. The
# sentences are generated from the words in the first cell, so no download is needed. With your own
# files only that cell changes. The training takes half a minute, because the sentences are short
# and the network is tiny.

# %%
import random
import tempfile
from copy import deepcopy
from inspect import getsource
from pathlib import Path

import torch
from matplotlib import pyplot as plt
from torch.nn.utils.rnn import pad_sequence

from transept import ModelConfig, Transducer, Transformer
from transept.apps.svg import Label, Stroke
from transept.apps.visualize.figures import Choice, draw_figure
from transept.checkpoint import WEIGHTS, Bundle, average, load_weights, weights_of, write_directory
from transept.decoding.beam import Beams
from transept.decoding.step import length_penalty
from transept.evaluation.conventions import sacre_bleu
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.text.tokenizer import EOS_ID
from transept.text.training import train_tokenizer
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

torch.manual_seed(1)

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
# ## A shared subword vocabulary
#
# **Byte-pair encoding** starts with single characters and repeatedly merges the most frequent pair.
# Frequent words become one token, rare words are split into **subwords**, and no word is unknown.
# Both languages share the vocabulary, as in section 5.1. Decoding restores the text exactly:

# %%
tokenizer = train_tokenizer((text for pair in train for text in pair), vocab_size=500)
for text in (*test[0], "Übermorgen?"):
    ids = tokenizer.encode(text)
    print(" ".join(tokenizer.pieces(text)))
    assert tokenizer.decode(ids) == text

# %% [markdown]
# ## Training
#
# The sentences of a batch are sampled at random here. The package's data loader packs them into
# tiles and can resume within an epoch.

# %%
sources = [[*ids, EOS_ID] for ids in tokenizer.encode_batch([source for source, _ in train])]
targets = [[*ids, EOS_ID] for ids in tokenizer.encode_batch([target for _, target in train])]


def tokens(rows):
    """Sentences as the network reads them, without padding."""
    filled = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return Tokens.padded(filled, pad_id=0).without_padding()


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
    if step == 30:
        unsure = deepcopy(model)  # for a comparison below
    if step > steps - 100 and step % 20 == 0:
        weights = {WEIGHTS: weights_of(model)}
        write_directory(folder / f"step-{step}", tensors=weights, texts={}, about={"step": step})

# Figure: Perplexity in 300 steps of training, on a logarithmic scale.
_, axis = plt.subplots(figsize=(7.2, 2.4))
axis.semilogy(perplexities, color="tab:purple", linewidth=1)
axis.set(xlabel="step", ylabel="perplexity per token")
print(f"perplexity {perplexities[0]:.0f} at first, {perplexities[-1]:.2f} at the end")
assert perplexities[-1] < 2

# %% [markdown]
# ## Checkpoint averaging

# %%
print(getsource(average))

# %%
checkpoints = [Bundle.open(path) for path in sorted(folder.iterdir())]
load_weights(model, average(checkpoints), origin=folder)
translator = Transducer([model.eval()], tokenizer, tokenizer)
print(f"the mean of {len(checkpoints)} checkpoints")
assert len(checkpoints) == 5

# %% [markdown]
# ## Beam search
#
# Greedy search never revises a word. **Beam search** keeps the W most probable prefixes, and
# returns the best finished output. Each additional word lowers the probability of an output, so the
# most probable outputs are too short. The paper uses the **length penalty** of Wu et al. and ranks
# outputs by log P(Y|X) / lp(Y):

# %%
print(getsource(length_penalty))

# %%
lengths = range(1, 41)
# Figure: The length penalty for four values of α. The paper uses α = 0.6.
_, axis = plt.subplots(figsize=(7.2, 2.4))
for alpha in (0.0, 0.3, 0.6, 1.0):
    axis.plot(lengths, [length_penalty(n, alpha) for n in lengths], label=f"α = {alpha}")
axis.set(xlabel="|Y|, the end symbol counted", ylabel="lp(Y)")
axis.legend(frameon=False)
assert length_penalty(1, 0.6) == 1.0

# %% [markdown]
# A search may stop when no unfinished hypothesis can still win. No additional word can raise log P.
# Therefore the best score that a hypothesis can reach is its current log P, divided by the penalty
# of the maximum length. With this bound, early stopping of the search never changes the result.

# %%
print(getsource(Beams._done))

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
# On a task as easy as this one, the two searches find the same outputs. The n-best list shows the
# alternatives, with the scores by which they are ranked:

# %%
for output in translator.translate(texts[0], n_best=4).outputs:
    print(f"{output.score:8.3f}  {output.text}")

# %% [markdown]
# The same network after its first thirty steps is less confident. There a wider beam finds outputs
# with a higher score under the model. A higher score does not imply a better translation:

# %%
novice = Transducer([unsure.eval()], tokenizer, tokenizer)
narrow, wide = (novice.translate(texts[:40], beam_size=size) for size in (1, 4))
gain = [w.score - n.score for w, n in zip(wide, narrow, strict=True)]
better, worse = sum(g > 1e-6 for g in gain), sum(g < -1e-6 for g in gain)
print(f"of 40 sentences, beam 4 scores higher than greedy on {better}, lower on {worse}")
print(f"  greedy  {narrow[1].score:7.2f}  {narrow[1].text}")
print(f"  beam 4  {wide[1].score:7.2f}  {wide[1].text}")
assert better > worse

# %% [markdown]
# ## Attention maps
#
# These are the heads of the encoder-decoder attention in the last layer. Rows are the words that
# the decoder writes, columns are the source words that it attends to:

# %%
right = [r for r, (_, target) in zip(beam, test, strict=True) if r.text == target]
seen = max(right, key=lambda r: len(r.text.split()))
attention = translator.attend(seen.source, seen.text).joined()


def draw(map_, layer):
    """A heat map for each head."""
    _, axes = plt.subplots(1, config.n_heads, figsize=(7.2, 2.6), sharey=True)
    for head, axis in enumerate(axes):
        axis.imshow(map_.weights[layer, head].numpy(), vmin=0, vmax=1)
        axis.set_xticks(range(len(map_.keys.words)), map_.keys.words, rotation=90)
        axis.set_yticks(range(len(map_.queries.words)), map_.queries.words)
        axis.set_title(f"head {head + 1}")


# Figure: Encoder-decoder attention in the last layer. A stronger colour is a larger weight.
draw(attention.cross, layer=-1)
weights = attention.cross.weights
assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=1e-4)

# %% [markdown]
# Consider the articles. English *the* has no gender. The step that writes *der*, *die*, *das* or
# *den* must find the noun of the article, and whether it is the subject.
#
# The encoder's self-attention in its first layer is harder to interpret:

# %%
# Figure: Encoder self-attention in the first layer.
draw(attention.encoder, layer=0)

# %% [markdown]
# In the decoder's masked self-attention each word attends to previous words, and to no later one.

# %%
# Figure: Masked self-attention in the decoder's first layer: nothing is above the diagonal.
draw(attention.decoder, layer=0)
ahead = attention.decoder.weights.triu(1)
print(f"weight on later words: {ahead.sum():.1f}")
assert ahead.sum() == 0

# %% [markdown]
# ## The form of the paper's figures
#
# Figures 3 to 5 draw lines between words. The width of a line is the weight, its colour is the
# head. `transept visualize` draws them for any model, as SVG or as an interactive page. These are
# the encoder's first two heads in the form of Figure 5:

# %%
picture = draw_figure("5", attention, Choice(kind="encoder", layer=1, heads=(1, 2)))
# Figure: Encoder self-attention in layer 1, as lines. A wider line is a larger weight.
_, axis = plt.subplots(figsize=(7.2, 7.2 * picture.height / picture.width))
axis.set(xlim=(0, picture.width), ylim=(picture.height, 0))
axis.axis("off")
sides = {"start": "left", "middle": "center", "end": "right"}
for panel, shape in ((p, s) for p in picture.panels for s in p.shapes):
    if isinstance(shape, Stroke) and shape.weight:
        x, y = (panel.x + shape.x1, panel.x + shape.x2), (panel.y + shape.y1, panel.y + shape.y2)
        axis.plot(x, y, color=f"C{shape.weight.head}", linewidth=4 * shape.weight.value)
    elif isinstance(shape, Label):
        x, y, angle = panel.x + shape.x, panel.y + shape.y, 90 if shape.upright else 0
        how = {"rotation": angle, "rotation_mode": "anchor", "va": "center", "fontsize": 11}
        axis.text(x, y, shape.text, ha=sides[shape.anchor], **how)

strokes = (s for p in picture.panels for s in p.shapes if isinstance(s, Stroke))
drawn = [stroke.weight for stroke in strokes if stroke.weight]
n_words = len(attention.encoder.keys.words)
print(f"{len(drawn)} lines, whose weights sum to 1 for each of {n_words} words and 2 heads")
assert abs(sum(weight.value for weight in drawn) - 2 * n_words) < 0.1

# %% [markdown]
# An attention map shows which words a head reads. It does not explain why the model chose its
# output.
#
# ## Beyond this example
#
# A practical translation model needs more text, a larger network, and time. The [guide to
# training](../guides/train.md) does the same with your own files. The [guide to reproducing the
# paper](../guides/reproduce.md) does it with the paper's text.
