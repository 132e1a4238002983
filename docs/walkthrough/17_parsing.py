# %% [markdown]
# # 17. Constituency parsing
#
# *Section 6.3*
#
# **The paper's claim.** The Transformer is not made for translation only. Without changes it learns
# to parse English: the input is a sentence, the output is its tree, written as a sequence. Trained
# on 40,000 trees of the Wall Street Journal alone, it reaches 91.3 F1, better than most parsers
# that were built for the task.

# %%
import random
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept import ModelConfig, Transformer
from transept.api.parser import Parser
from transept.evaluation.parse_report import evaluate_parses
from transept.model.packing import Tokens, pad_rows
from transept.runtime.device import Runtime
from transept.tasks.parsing.bounds import Bounds, may_follow
from transept.tasks.parsing.linearisation import delinearise, fault_of, linearise
from transept.tasks.parsing.vocabulary import tree_vocabulary
from transept.text.tokenizer import EOS_ID
from transept.text.training import train_tokenizer
from transept.text.trees import parse_tree
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

torch.set_num_threads(1)

# %% [markdown]
# ## A tree as a sequence
#
# A **constituency tree** groups the words of a sentence into phrases: noun phrases (NP), verb
# phrases (VP), prepositional phrases (PP). The paper follows Vinyals et al. (2015). The tree is
# written depth first, each bracket with its label, and each word as XX. The words are not needed:
# they are in the input.

# %%
tree = parse_tree("(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN owl))) (. .))")
symbols = linearise(tree)
print(*tree.words)
print(*symbols)
assert delinearise(symbols, tree.words, tree.tags) == tree

# %%
print(getsource(linearise))
print(getsource(delinearise))

# %% [markdown]
# ## A treebank
#
# The Penn Treebank requires a licence, so this chapter makes its trees. They contain the classic
# difficulty of English: in *sees the dog with the owl* the prepositional phrase can belong to the
# dog or to the seeing. Here the verb decides. With *sees* it belongs to the verb, with *likes* to
# the noun.

# %%
chance = random.Random(1)


def noun_phrase(depth=1):
    """A noun, sometimes with a prepositional phrase."""
    noun = f"(NP (DT the) (NN {chance.choice(['cat', 'dog', 'hen', 'owl', 'fox'])}))"
    if depth and chance.random() < 0.3:
        return f"(NP {noun} (PP (IN near) {noun_phrase(depth - 1)}))"
    return noun


def sentence():
    """A tree whose verb decides where its prepositional phrase belongs."""
    verb = chance.choice(["sees", "likes"])
    phrase = f"(PP (IN with) {noun_phrase(0)})"
    if verb == "sees":
        predicate = f"(VP (VBZ sees) {noun_phrase()} {phrase})"
    else:
        predicate = f"(VP (VBZ likes) (NP {noun_phrase()} {phrase}))"
    return parse_tree(f"(S {noun_phrase()} {predicate} (. .))")


trees = [*dict.fromkeys(sentence() for _ in range(4000))]
train, test = trees[:-100], trees[-100:]
print(f"{len(train):,} trees for training, {len(test)} for the test")
print(test[0])

# %% [markdown]
# ## Training
#
# It is the training of translation, with two vocabularies: subwords for the sentence, and one token
# for each symbol of a tree. The paper uses 4 layers of width 1024, here 1 layer of width 64 is
# enough.

# %%
words = train_tokenizer((" ".join(tree.words) for tree in train), vocab_size=300)
brackets = tree_vocabulary(train)
sources = [[*words.encode(" ".join(tree.words)), EOS_ID] for tree in train]
targets = [[*brackets.encode(" ".join(linearise(tree))), EOS_ID] for tree in train]
print("source ids", sources[0])
print("target ids", targets[0])

torch.manual_seed(1)
config = ModelConfig(
    vocab_size=brackets.vocab_size, source_vocab_size=words.vocab_size, tied_embeddings="two-way",
    n_layers=1, d_model=64, d_ff=256, n_heads=4, dropout=0.0,
)  # fmt: skip
model = Transformer(config)
update = Update(
    model,
    adam=make_adam(model, AdamConfig()),
    schedule=Schedule(config.d_model, warmup_steps=100, factor=0.7),
    loss=Loss(label_smoothing=0.1, pad_id=0),
    runtime=Runtime.choose("cpu"),
    seed=1,
)


def tokens(rows):
    """A batch without padding."""
    return Tokens.padded(pad_rows(rows, 0), 0).without_padding()


losses = []
for step in range(1, 141):
    chosen = chance.sample(range(len(train)), 32)
    batch = MicroBatch(tokens([sources[i] for i in chosen]), tokens([targets[i] for i in chosen]))
    losses.append(update(step, [batch], n_target_tokens=len(batch.target.ids)).nll.item())
print(f"loss {losses[0]:.2f} at first, {losses[-1]:.3f} at the end")

# %% [markdown]
# ## Only trees
#
# A network can write a sequence that is not a tree: a bracket without its end, or a word too few.
# The package constrains the beam search. At each step, only symbols are allowed with which a tree
# over exactly these words can still be completed. In plain Python:

# %%
print(getsource(may_follow))

# %%
bounds = Bounds(words=tree.words, max_length=60)
for prefix in ([], ["(S"], ["(S", "(NP", "XX"], symbols):
    allowed = may_follow(prefix, {"XX", "(S", "(NP", ")S", ")NP"}, bounds)
    print(f"{' '.join(prefix[-3:]) or 'start':12} may be followed by", *sorted(allowed))
    assert allowed

# %% [markdown]
# Without the constraint, the output is repaired afterwards. `fault` says what was wrong:

# %%
parser = Parser([model.eval()], words, brackets)
sentences = [list(tree.words) for tree in test]
free = parser.parse(sentences, beam_size=4, constraint="none")
parses = parser.parse(sentences, beam_size=4)
faults = sum(parse.outputs[0].fault is not None for parse in free)
print(f"{faults} of {len(test)} sequences of the free search are not trees over the sentence")
print(parses[0].tree)
assert all(parse.words == tree.words for parse, tree in zip(parses, test, strict=True))
assert fault_of(linearise(parses[0].tree), len(parses[0].words)) is None

# %% [markdown]
# ## Labelled bracketing F1
#
# **F1** compares the brackets of a parse with those of the correct tree. A bracket is right if its
# label and its first and last word are right:
#
# $$F_1 = \frac{2 P R}{P + R} \qquad P = \frac{\text{right}}{\text{predicted}} \qquad
# R = \frac{\text{right}}{\text{correct}}$$

# %%
report = evaluate_parses([str(tree) for tree in test], [str(parse.tree) for parse in parses])
score = report.all.whole
print(
    f"{report.convention.name}: F1 {score.f1:.1f}, {score.complete_match:.0f} % of the trees exact"
)
repaired = evaluate_parses([str(tree) for tree in test], [str(parse.tree) for parse in free])
print(f"without the constraint: F1 {repaired.all.whole.f1:.1f}")
assert score.f1 > 70

# %% [markdown]
# Did the network learn that the verb decides? The same words after *sees* and after *likes*:

# %%
pair = [f"the cat {verb} the dog with the owl ." for verb in ("sees", "likes")]
drawn = [parse.tree for parse in parser.parse(pair, beam_size=4)]
for tree in drawn:
    print(tree)


# %%
# Figure: The same words, two trees: the phrase belongs to the verb (left) or to the noun (right).
def draw(tree, axis):
    """A tree with its words at the bottom."""
    depth = {}
    for bracket in tree.brackets:
        around = [b for b in depth if b.start <= bracket.start and bracket.end <= b.end]
        depth[bracket] = len(around)
        middle = (bracket.start + bracket.end - 1) / 2
        axis.text(middle, -depth[bracket], bracket.label, ha="center", va="center")
        if around:
            above = max(around, key=depth.get)
            top = (above.start + above.end - 1) / 2, 0.25 - depth[bracket] + 0.5
            axis.plot((top[0], middle), (top[1], 0.25 - depth[bracket]), color="C0", lw=1)
    floor = max(depth.values()) + 1
    for n, word in enumerate(tree.words):
        inner = max((b for b in depth if b.start <= n < b.end), key=depth.get)
        middle = (inner.start + inner.end - 1) / 2
        axis.plot((middle, n), (-depth[inner] - 0.25, 0.25 - floor), color="C7", lw=0.7)
        axis.text(n, -floor, word, ha="center", va="center", fontsize=8)
    axis.set(ylim=(-floor - 0.4, 0.4))
    axis.axis("off")


_, axes = plt.subplots(1, 2, figsize=(7.2, 2.8))
for tree, axis in zip(drawn, axes, strict=True):
    draw(tree, axis)

# %% [markdown]
# ## Beyond this example
#
# These trees are regular. Real ones are not, and a decoder that writes XX for each word easily
# loses count in long sentences. [The parsing experiment](../parsing.md) has the results on a real
# treebank and what raised them. The [guide](../guides/parse.md) trains a parser on your trees.
