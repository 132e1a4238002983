"""Constrains beam search so that every output is a tree over exactly the input's words.

Implements `bounds` for many rows at once, in constant time per symbol. Each open bracket stores,
in addition to its label:

    chain   brackets over its words, including itself, if it were closed now; 0 if it is empty
    debt    the brackets around it need debt // max_unary more words if its own chain ends as 1,
            otherwise (debt + chain − 1) // max_unary

A bracket whose only child is a bracket continues that child's chain. It adds 1 to the debt, and
every max_unary of them require a word that breaks the chain. A bracket with more children starts
a new chain, and the debt is rounded down.

Leaves that name a word (`leaves`) may represent only that word, and no other leaf may then.
"""

from collections.abc import Sequence

import torch

from transept.errors import DecodingError
from transept.shapes import Bool, Int, Tensor
from transept.tasks.parsing.bounds import MAX_UNARY, Bounds
from transept.tasks.parsing.leaves import word_of
from transept.tasks.parsing.vocabulary import Roles
from transept.text.symbols import Symbols
from transept.text.trees import escape

_FORBIDDEN, _LEAF, _OPEN, _CLOSE, _END = range(5)
_LABEL, _CHAIN, _DEBT = range(3)
_NO_LEAF = -1


class TreeConstraint:
    """A `decoding.step.Constraint`: starts with one row per sentence and follows the search."""

    def __init__(
        self,
        vocabulary: Symbols,
        sentences: Sequence[Sequence[str]],
        max_lengths: Sequence[int],
        max_unary: int = MAX_UNARY,
        device: torch.device | str = "cpu",
    ) -> None:
        """Set the words and the limits of the trees.

        Args:
            vocabulary: The target vocabulary.
            sentences: The words of each sentence.
            max_lengths: Maximum output length of each sentence, including the end symbol.
            max_unary: Maximum number of brackets over the same words.
            device: The device of the log-probabilities.
        """
        _check(sentences, max_lengths, max_unary)
        roles = Roles.of(vocabulary)
        n_words = [len(words) for words in sentences]
        self._max_unary = max_unary
        self._roles, self._labels = _tables(roles, vocabulary, device)
        self._closers = torch.tensor(roles.closers, device=device)
        self._names, self._named = _name_tables(roles, vocabulary, sentences, device)
        self._sentence = torch.arange(len(n_words), device=device)
        self._words_left = torch.tensor(n_words, device=device)
        self._length_left = torch.tensor(max_lengths, device=device)
        self._begun = torch.zeros_like(self._words_left, dtype=torch.bool)
        self._depth = torch.zeros_like(self._words_left)
        # Each bracket takes two symbols. Level 0 is outside of the root and counts as non-empty.
        room = int((self._length_left - 1 - self._words_left).amax()) // 2
        self._stack = torch.zeros(len(n_words), room + 1, 3, dtype=torch.int32, device=device)
        self._stack[:, 0, _CHAIN] = 1

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Append a symbol to each row (None: at the start); return which symbols may follow."""
        if tokens is not None:
            self._append(tokens.to(self._depth.device))
        top, around = self._level(self._depth), self._level(self._depth - 1)
        over = self._begun & (self._depth == 0)
        never = torch.zeros_like(over)
        may = torch.stack([never, self._may_take_a_word(top), self._may_open(top), never, over], 1)
        closer = self._closers[top[:, _LABEL]]
        may_close = self._may_close(top, around)
        mask = may[:, self._roles].scatter(1, closer[:, None], may_close[:, None])
        return mask & self._names_the_next_word()

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Keep only these rows."""
        rows = rows.to(self._depth.device)
        self._words_left, self._length_left = self._words_left[rows], self._length_left[rows]
        self._begun, self._depth = self._begun[rows], self._depth[rows]
        self._sentence = self._sentence[rows]
        self._stack = self._stack[rows]

    def _may_take_a_word(self, top: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        return (self._depth > 0) & (top[:, _DEBT] // self._max_unary < self._words_left)

    def _names_the_next_word(self) -> Bool[Tensor, "N V"]:
        """Allow leaves that name the next word, or unnamed leaves if none does. Allow brackets."""
        name = self._named[self._sentence, self._words_left.clamp(min=0)]
        return (self._names == name[:, None]) | (self._names == _NO_LEAF)

    def _may_open(self, top: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        inside = (self._depth > 0) | ~self._begun
        # This symbol, the words, a closing bracket for this and each open one, and EOS.
        fits = self._length_left >= 1 + self._words_left + (1 + self._depth) + 1
        return inside & fits & (self._debt_on(top) // self._max_unary < self._words_left)

    def _may_close(self, top: Int[Tensor, "N 3"], around: Int[Tensor, "N 3"]) -> Bool[Tensor, " N"]:
        chain = top[:, _CHAIN]
        valid = (chain >= 1) & (chain <= self._max_unary)
        # The root may be closed only after the last word.
        allowed = (self._depth > 1) | ((self._depth == 1) & (self._words_left == 0))
        needed = (around[:, _DEBT] + _chain_around(top, around) - 1) // self._max_unary
        return valid & allowed & (needed <= self._words_left)

    def _append(self, tokens: Int[Tensor, " N"]) -> None:
        """Update the one level of each row's stack that a symbol changes.

        A search may keep rows of probability zero and append forbidden symbols to them. Their
        state is then irrelevant, but must not cause an error.
        """
        role = self._roles[tokens]
        leaf, opens, closes = role == _LEAF, role == _OPEN, role == _CLOSE
        top, around = self._level(self._depth), self._level(self._depth - 1)
        opened = torch.stack(
            [self._labels[tokens], torch.zeros_like(top[:, _CHAIN]), self._debt_on(top)], 1
        )
        level = torch.where(closes[:, None], around, torch.where(opens[:, None], opened, top))
        chain = torch.where(closes, _chain_around(top, around), level[:, _CHAIN])
        level[:, _CHAIN] = chain.masked_fill(leaf, 1)
        deepest = self._stack.shape[1] - 1
        self._depth = (self._depth + opens.long() - closes.long()).clamp(0, deepest)
        self._stack.scatter_(1, self._depth[:, None, None].expand(-1, 1, 3), level[:, None])
        self._begun = self._begun | opens
        self._words_left = self._words_left - leaf.long()
        self._length_left = self._length_left - 1

    def _debt_on(self, top: Int[Tensor, "N 3"]) -> Int[Tensor, " N"]:
        """Return the debt of a bracket opened inside this one."""
        chain, debt = top[:, _CHAIN], top[:, _DEBT]
        return torch.where(chain == 0, debt + 1, debt - debt % self._max_unary)

    def _level(self, depth: Int[Tensor, " N"]) -> Int[Tensor, "N 3"]:
        index = depth.clamp(min=0)[:, None, None].expand(-1, 1, 3)
        return self._stack.gather(1, index).squeeze(1)


def _chain_around(top: Int[Tensor, "N 3"], around: Int[Tensor, "N 3"]) -> Int[Tensor, " N"]:
    """Return the chain of the surrounding bracket once this one is closed."""
    return torch.where(around[:, _CHAIN] == 0, top[:, _CHAIN] + 1, 1)


def _tables(
    roles: Roles, vocabulary: Symbols, device: torch.device | str
) -> tuple[Int[Tensor, " V"], Int[Tensor, " V"]]:
    """Return the role of each id, and the label that it opens."""
    role = torch.full((vocabulary.vocab_size,), _FORBIDDEN)
    label = torch.zeros(vocabulary.vocab_size, dtype=torch.int32)
    role[list(roles.leaves)] = _LEAF
    role[list(roles.openers)] = _OPEN
    role[list(roles.closers)] = _CLOSE
    role[vocabulary.eos_id] = _END
    label[list(roles.openers)] = torch.arange(len(roles.labels), dtype=torch.int32)
    return role.to(device), label.to(device)


def _name_tables(
    roles: Roles,
    vocabulary: Symbols,
    sentences: Sequence[Sequence[str]],
    device: torch.device | str,
) -> tuple[Int[Tensor, " V"], Int[Tensor, "B L"]]:
    """Number the named words; return them by leaf, and by sentence and words left.

    0 means that a leaf names no word, or that no leaf names the word.
    """
    words = [word_of(leaf) for leaf in vocabulary.symbols_of(roles.leaves)]
    numbers = {word: number for number, word in enumerate(sorted({*words, ""}))}
    names = torch.full((vocabulary.vocab_size,), _NO_LEAF)
    names[list(roles.leaves)] = torch.tensor([numbers[word] for word in words])
    named = torch.zeros(len(sentences), 1 + max(map(len, sentences)), dtype=torch.long)
    for row, sentence in zip(named, sentences, strict=True):
        found = [numbers.get(escape(word), 0) for word in reversed(sentence)]
        row[1 : 1 + len(found)] = torch.tensor(found)
    return names.to(device), named.to(device)


def _check(sentences: Sequence[Sequence[str]], max_lengths: Sequence[int], max_unary: int) -> None:
    for number, (words, length) in enumerate(zip(sentences, max_lengths, strict=True), start=1):
        if not Bounds(words=words, max_length=length, max_unary=max_unary).feasible:
            raise DecodingError(
                f"sentence {number} has {len(words)} words, and no tree over them has at most "
                f"{length} symbols and {max_unary} brackets over the same words; a sentence needs "
                "at least one word, a maximum length of its words plus three, and one bracket"
            )
