# %% [markdown]
# # 11. A first model: the copy task and greedy decoding
#
# The simplest task for a sequence-to-sequence model is to copy its input. It is learned in seconds
# and needs every part of the network: the encoder must represent the position of each symbol, the
# decoder must keep track of its progress, and it must write the end symbol after the last one. The
# Annotated Transformer begins with the same task.

# %%
import math
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept import ModelConfig, Transformer
from transept.decoding.greedy import greedy_search, greedy_states, single_row_states
from transept.engines.native.network import IncrementalDecoder, encode
from transept.model.attention import record_attention
from transept.model.packing import Tokens, pad_rows
from transept.runtime.device import Runtime
from transept.tasks.toy import Toy
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

torch.manual_seed(1)
torch.set_num_threads(1)  # a second thread does not help with such small matrices

# %%
toy = Toy(kind="copy", n_symbols=8, min_length=3, max_length=6)
for source, target in toy.pairs(3, seed=0):
    print(source, "→", target)

# %% [markdown]
# 1 is the end symbol. A network of one layer is enough:

# %%
config = ModelConfig(
    vocab_size=toy.vocab_size, n_layers=1, d_model=64, d_ff=256, n_heads=2, dropout=0.0
)
model = Transformer(config)
print(f"{model.n_parameters():,} parameters")

# %% [markdown]
# ## Training
#
# `Update` combines the objects of the previous chapters: Adam, the schedule and the smoothed loss.

# %%
update = Update(
    model,
    adam=make_adam(model, AdamConfig()),
    schedule=Schedule(config.d_model, warmup_steps=100),
    loss=Loss(label_smoothing=0.1, pad_id=0),
    runtime=Runtime.choose("cpu"),
    seed=1,
)
size, losses, seen = 64, [], set()
for step in range(1, 301):
    pairs = toy.pairs(size, seed=step)
    source, target = (
        Tokens.padded(pad_rows(side, 0), pad_id=0) for side in zip(*pairs, strict=True)
    )
    batch = MicroBatch(source.without_padding(), target.without_padding())
    values = update(step, [batch], n_target_tokens=len(batch.target.ids))
    losses.append(values.nll.item())
    seen |= {tuple(ids) for ids, _ in pairs}

print(f"loss per token: {losses[0]:.2f} at first, {losses[-1]:.3f} at the end")
assert losses[-1] < 0.3

# %%
# Figure: The loss in 300 steps of training, on a logarithmic scale.
_, axis = plt.subplots(figsize=(7.2, 2.4))
axis.semilogy(losses, linewidth=1)
axis.set(xlabel="step", ylabel="−log p of a token", title="learning to copy")

# %% [markdown]
# ## Greedy decoding
#
# A trained decoder has no target to read. It writes one token at a time: **greedy
# decoding** appends the most probable token, and runs the decoder again, until the end symbol.
#
# $$y_i = \text{argmax}_w \; p(w \mid y_1, \dots, y_{i-1}, x)$$

# %%
model.eval()
source = toy.pairs(1, seed=10_000)[0][0]
memory = model.encode(torch.tensor([source]))
written = []
while written[-1:] != [1]:
    with torch.no_grad():
        # The network shifts its input right, so the last token is only a placeholder.
        logits = model.decode(torch.tensor([[*written, 1]]), memory)[-1]
    written.append(int(logits[1:].argmax()) + 1)  # id 0 is padding
    print(written)
assert written == source

# %% [markdown]
# This computes every position again for every token. The package's decoder stores the keys and
# values of earlier positions (a **key-value cache**) and computes only the new one. Its search does
# not depend on the network. It calls a *step* with the last token of each sentence, and receives
# log-probabilities of the next one. These two functions are all of greedy search, for a batch whose
# sentences end at different times:

# %%
print(getsource(greedy_states))
print(getsource(single_row_states))

# %% [markdown]
# The network copies sequences that did not occur in training:

# %%
held_out = [pair for pair in toy.pairs(1000, seed=10_000) if tuple(pair[0]) not in seen][:200]
step = IncrementalDecoder(model, encode(model, pad_rows([pair[0] for pair in held_out], 0)))
outputs = greedy_search(step, max_lengths=[56] * len(held_out), alpha=0.6, eos_id=1)

for (source, _), output in list(zip(held_out, outputs, strict=True))[:4]:
    print(source[:-1], "→", list(output.ids), f" log P = {output.log_probability:.2f}")
right = sum(
    list(output.ids) == target[:-1] for (_, target), output in zip(held_out, outputs, strict=True)
)
print(f"{right} of {len(held_out)} are correct")
assert right >= 180

# %% [markdown]
# The output is correct, but the probabilities stay below 1. This is the effect of label smoothing:
# the target probability of a correct token was 0.9 plus a share of the rest, and the network
# predicts that probability.

# %%
n_tokens = sum(len(output.ids) + 1 for output in outputs)  # the end symbol counts
sure = math.exp(sum(output.log_probability for output in outputs) / n_tokens)
print(f"mean probability {sure:.3f}, target {0.9 + 0.1 / (toy.vocab_size - 1):.3f}")
assert 0.85 < sure < 0.95

# %% [markdown]
# ## Attention of the copy task
#
# To copy, the step that writes symbol *i* should attend to symbol *i* of the source.
# `record_attention` reads the attention weights while a model runs:

# %%
source, target = max(held_out, key=lambda pair: len(pair[0]))
with record_attention(model) as weights:
    model(torch.tensor([source]), torch.tensor([target]))
looked = weights["decoder.layers.0.source_attention"][0]
found = looked.amax(dim=0).argmax(-1).eq(torch.arange(len(source))).float().mean()
print(f"weights {tuple(looked.shape)}: 2 heads, {len(target)} written, {len(source)} read")
print(f"{found:.0%} of the steps attend most to the symbol that they write")
assert torch.allclose(looked.sum(-1), torch.ones(2, len(source)), atol=1e-5)
assert found > 0.5

# %%
# Figure: Encoder-decoder attention of both heads. A stronger colour is a larger weight.
_, axes = plt.subplots(1, 2, figsize=(7.2, 3.0))
names = [*map(str, source[:-1]), "end"]
for head, (axis, map_) in enumerate(zip(axes, looked, strict=True), start=1):
    axis.imshow(map_.numpy(), vmin=0, vmax=1)
    axis.set_xticks(range(len(names)), names)
    axis.set_yticks(range(len(names)), names)
    axis.set(xlabel="reads", ylabel="writes", title=f"head {head}")

# %% [markdown]
# The training did not specify this alignment. Gradient descent found the diagonal. The [next
# chapter](12_break_it_and_see.py) trains the same network with one part removed.
