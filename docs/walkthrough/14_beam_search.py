# %% [markdown]
# # 14. Beam search and the length penalty
#
# *Section 6.1*
#
# **The paper's settings.** Beam size 4, length penalty $\alpha = 0.6$, and output of at most the
# input length + 50 tokens, with early termination where possible. They were chosen on the
# development set.
#
# Translation is a search for the output with the highest probability. There are $8000^{12}$ outputs
# of 12 tokens, so not all can be tried. **Greedy decoding** takes the best token at each step and
# never revises it. **Beam search** keeps the $W$ most probable prefixes.

# %%
import textwrap
import time
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept.api.search_tree import search_tree
from transept.decoding.beam import Beams, beam_states, search
from transept.decoding.config import SearchConfig
from transept.decoding.step import length_penalty

# %% [markdown]
# ## Where greedy decoding fails
#
# The search does not know the network. It calls a *step*, which appends a token to each row and
# returns log-probabilities of the next token. So a network can be replaced by a small table. After
# *A* (0.6) nothing is very probable, after *B* (0.4) *C* is almost certain:

# %%
NAMES = ["", "end", "A", "B", "C", "D"]
TABLE = {
    None: {"A": 0.6, "B": 0.4},
    "A": {"C": 0.35, "D": 0.33, "end": 0.32},
    "B": {"C": 0.9, "D": 0.1},
    "C": {"end": 1.0},
    "D": {"end": 1.0},
}


class Table:
    """A step whose probabilities depend on the last token only."""

    def __call__(self, tokens):
        """Log p of each next token."""
        last = [None] if tokens is None else [NAMES[token] for token in tokens.tolist()]
        p = [[TABLE.get(name, {}).get(following, 0.0) for following in NAMES] for name in last]
        return torch.tensor(p).log()

    def select(self, rows):
        """The table has no state."""


found = {}
for width in (1, 2):
    config = SearchConfig(beam_size=width, length_penalty=0.0)
    [[best]] = search(Table(), max_lengths=[5], config=config, eos_id=1)
    found[width] = round(float(torch.tensor(best.log_probability).exp()), 2)
    print(f"beam {width}:", *(NAMES[i] for i in best.ids), f"P = {found[width]}")
assert found == {1: 0.21, 2: 0.36}

# %% [markdown]
# ## One whole step
#
# `beam_states` is the loop. `extend` is one step of it. All extensions of all live prefixes
# compete, and the best $2W$ are candidates. Those that end with the end symbol are finished
# (`_finish`), and the best $W$ of the others stay alive. All sentences of a batch do this at the
# same time: B is the number of sentences, W the beam size, K the number of candidate tokens.

# %%
print(getsource(beam_states))
print(getsource(Beams.extend))
print(getsource(Beams._finish))
print(getsource(Beams._done))

# %% [markdown]
# The shapes in a step, for one sentence and beam 4: each of 4 rows has its 8 best tokens, (4, 8).
# Their log-probabilities are added to those of the prefixes, (1, 4, 8), flattened to (1, 32), and
# the best 8 remain, (1, 8). `_ids` follows the stored back pointers to read an output.
#
# ## One sentence
#
# This is the search of the bundled model, step by step. Each column shows the candidates of a step,
# the best at the top, with log P:

# %%
translator = transept.load("en-de", engine="native")
tree = search_tree(translator, "The old man has not seen the dog.", SearchConfig(beam_size=4))
for number, step in enumerate(tree.steps, start=1):
    shown = (f"{h.token.strip('▁')} {h.score:.1f}" for h in step if h.state != "pruned")
    print(f"{number:2}: " + "  |  ".join(shown))
outputs = [h for step in tree.steps for h in step if h.state == "finished"]
winner = next(h for h in outputs if h.id == tree.winner)
print(textwrap.fill(tree.reason, 80))
assert winner.text == "Der alte Mann hat den Hund nicht gesehen."
assert winner.normalized == max(h.normalized for h in outputs)

# %%
# Figure: The tree of the search. Grey: pruned. Green: finished. Thick: the output.
_, axis = plt.subplots(figsize=(10.0, 4.4))
places = {h.id: (x, -y) for x, step in enumerate(tree.steps) for y, h in enumerate(step)}
parents = {h.id: h.parent for step in tree.steps for h in step}
path, at = set(), tree.winner
while at is not None:
    path.add(at)
    at = parents[at]
colours = {"kept": "C0", "finished": "C2", "pruned": "C7"}
for h in (h for step in tree.steps for h in step):
    (x, y), colour = places[h.id], colours[h.state]
    axis.text(x, y + 0.12, h.token.strip("▁"), ha="center", va="bottom", color=colour)
    if h.parent is not None and h.state != "pruned":
        width = 3 if h.id in path else 1
        axis.plot(*zip(places[h.parent], (x, y), strict=True), color=colour, lw=width)
axis.set(xlabel="step", yticks=[], ylim=(-7.5, 0.9), title="candidates, the best at the top")
axis.set_xticks(range(len(tree.steps)), range(1, len(tree.steps) + 1))
axis.spines["left"].set_visible(False)

# %% [markdown]
# Two details are worth a look. At step 10 the output without its full stop is finished. Its
# probability is small, and it loses. After step 12 all good outputs are finished, and the live
# prefixes are nonsense. The search continues until it is certain that none of them can win. That is
# the subject of the last section.
#
# ## The length penalty
#
# Each further token lowers the probability of an output, so the most probable outputs are too
# short. The paper divides by the **length penalty** of Wu et al. (2016). $|Y|$ counts the end
# symbol:
#
# $$\text{score}(Y) = \frac{\log P(Y \mid X)}{\text{lp}(Y)} \qquad
# \text{lp}(Y) = \left(\frac{5 + |Y|}{6}\right)^{\alpha}$$

# %%
print(getsource(length_penalty))

# %%
assert length_penalty(1, 0.6) == 1.0
short, long = -4.0 / length_penalty(5, 0.6), -4.6 / length_penalty(12, 0.6)
print(f"5 tokens, log P −4.0: score {short:.2f}; 12 tokens, log P −4.6: score {long:.2f}")
assert long > short

# %%
# Figure: The length penalty for four values of α. The paper uses 0.6.
_, axis = plt.subplots(figsize=(7.2, 2.4))
for alpha in (0.0, 0.3, 0.6, 1.0):
    axis.plot(range(1, 41), [length_penalty(n, alpha) for n in range(1, 41)], label=f"α = {alpha}")
axis.set(xlabel="|Y|, the end symbol counted", ylabel="lp(Y)")
axis.legend()

# %% [markdown]
# ## Beam size
#
# Greedy decoding commits to *desto eher wir …*, whose word order is wrong, and cannot take it back.
# The beam finds *desto eher sind wir fertig*, which is more probable as a whole:

# %%
texts = [
    "The sooner we start, the sooner we finish.",
    "The children were so tired that they fell asleep in the car.",
    "She gave her brother the letter that she had found.",
    "The committee has not yet decided whether the proposal should be adopted.",
    "He opened the door and asked the old man to come in.",
    "The bank refused the loan.",
]
scores = {}
for width in (1, 2, 4, 8):
    begun = time.perf_counter()
    results = translator.translate(texts, beam_size=width)
    scores[width] = sum(result.score for result in results) / len(results)
    print(f"beam {width}: mean score {scores[width]:.3f}, {time.perf_counter() - begun:.2f} s")
    if width in (1, 4):
        print(*(f"    {result.text}" for result in results[:2]), sep="\n")
assert scores[4] > scores[1]

# %% [markdown]
# The second sentence is a warning. The beam's output has a higher score than the greedy one, but
# its children *schliefen*, slept, and did not fall asleep. A search finds what the model prefers,
# which is not always better. A beam of two to four is enough for a well-trained model. Much wider
# beams find outputs that are too short.
#
# ## When to stop
#
# $\log P$ of a live prefix can only decrease, and the penalty is largest at the maximum length. So
# no continuation of a prefix can score more than
#
# $$\text{bound} = \frac{\log P(\text{prefix})}{\text{lp}(\text{maximum length})}$$
#
# When the requested finished outputs (`n_best`, here all $W$) are better than the best bound
# (`_done`), the search stops. This **early stopping** never changes the result. It also explains
# the nonsense above: the bound had to fall below the fourth best output first.

# %%
bounds = [
    max(h.score for h in step if h.state == "kept") / length_penalty(10 + 50, 0.6)
    for step in tree.steps
]
worst = sorted(h.normalized for h in outputs)[-4]
print("bound by step:", [round(bound, 2) for bound in bounds])
print(f"the fourth best output has {worst:.2f}")
assert bounds[-1] <= worst < bounds[-2]
assert sorted(bounds, reverse=True) == bounds, "the bound never rises"
