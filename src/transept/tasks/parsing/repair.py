"""Turns any sequence into a tree, for output decoded without `constraint`."""

from collections.abc import Sequence

from transept.tasks.parsing.leaves import XX, tag_of
from transept.tasks.parsing.linearisation import CLOSE, OPEN
from transept.text.tokenizer import UNK
from transept.text.trees import Bracket, BracketStack, Tree


def repair(
    symbols: Sequence[str],
    words: Sequence[str],
    tags: Sequence[str] | None = None,
    root: str = "S",
) -> Tree:
    """Return the tree a sequence most likely means. A well-formed one gives its own tree.

    The sequence is read from left to right. A closing bracket closes the innermost bracket with
    its label and everything inside it; without such a bracket it is ignored. Excess words and
    unknown symbols are skipped. At the end all brackets are closed, and empty ones are dropped.
    The first bracket becomes the root: it also covers everything after its end and the missing
    words. If it does not start at the first word, a new root is put around it.

    Args:
        symbols: Any sequence.
        words: The words of the sentence, at least one.
        tags: Its tags. None: those in the sequence, and XX.
        root: The label of a new root.
    """
    stack = BracketStack()
    leaves: list[str] = []
    for symbol in symbols:
        kind, label = symbol[0], symbol[1:]
        if kind == OPEN:
            stack.open(label)
        elif kind == CLOSE:
            if label in stack.labels():
                while stack.close() != label:
                    pass
        elif symbol != UNK and len(leaves) < len(words):
            leaves.append(tag_of(symbol))
            stack.position += 1
    while stack.depth:
        stack.close()
    brackets = [bracket for bracket in stack.brackets() if bracket.start < bracket.end]
    missing = [XX] * (len(words) - len(leaves))
    own_tags = (*leaves, *missing) if tags is None else tuple(tags)
    return Tree(tuple(words), own_tags, _rooted(brackets, len(words), root))


def _rooted(brackets: list[Bracket], n_words: int, root: str) -> tuple[Bracket, ...]:
    if brackets and brackets[0].start == 0:
        return (brackets[0]._replace(end=n_words), *brackets[1:])
    return (Bracket(root, 0, n_words), *brackets)
