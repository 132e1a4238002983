"""With the constraint, every output is a tree, and every tree is possible."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.step import Constrained, Constraint
from transept.errors import DecodingError
from transept.shapes import Float, Int, Tensor
from transept.tasks.parsing.bounds import Bounds, can_be_completed, may_follow
from transept.tasks.parsing.constraint import TreeConstraint
from transept.tasks.parsing.linearisation import delinearise
from transept.tasks.parsing.vocabulary import vocabulary_of
from transept.text.symbols import Symbols
from transept.text.tokenizer import EOS, EOS_ID

TWO_LABELS = vocabulary_of(["A", "B"], ["NN", "XX"])
NAMING = vocabulary_of(["A", "B"], ["NN", "XX", "NN(cat)", "VB(cat)", "-LRB-(-LRB-)"])
WORDS = st.lists(st.sampled_from(["cat", "dog", "(", "-LRB-", "NN"]), min_size=1, max_size=12)


def some(n_words: int) -> tuple[str, ...]:
    return ("w",) * n_words


def allowed(vocabulary: Symbols, mask: Tensor) -> set[str]:
    names = ("<pad>", EOS, "<unk>", "<s>", *vocabulary.symbols)
    return {names[index] for index in mask.nonzero().squeeze(1).tolist()}


@dataclass(frozen=True)
class AllTrees:
    """Enumerates every tree over the words, with at most a given number of brackets."""

    labels: str
    max_unary: int

    def over(self, words: int, brackets: int, chain: int | None = None) -> Iterator[list[str]]:
        """At least one bracket over all words, and at most `chain` of them."""
        chain = self.max_unary if chain is None else chain
        if brackets and chain:
            inside = [
                *([["XX"]] if words == 1 else []),
                *self.over(words, brackets - 1, chain - 1),
                *self.several(words, brackets - 1),
            ]
            for label in self.labels:
                yield from ([f"({label}", *each, f"){label}"] for each in inside)

    def things(self, words: int, brackets: int) -> Iterator[list[str]]:
        """One node or several over all words."""
        yield from self.one(words, brackets)
        yield from self.several(words, brackets)

    def one(self, words: int, brackets: int) -> Iterator[list[str]]:
        yield from [["XX"]] if words == 1 else []
        yield from self.over(words, brackets)

    def several(self, words: int, brackets: int) -> Iterator[list[str]]:
        for split in range(1, words):
            for first in self.one(split, brackets):
                left = brackets - sum(symbol[0] == "(" for symbol in first)
                yield from (first + rest for rest in self.things(words - split, left))


def reachable(vocabulary: Symbols, bounds: Bounds) -> Iterator[tuple[str, ...]]:
    """Every sequence that the constraint allows, all prefixes of a length at once."""
    constraint = TreeConstraint(vocabulary, [bounds.words], [bounds.max_length], bounds.max_unary)
    prefixes: list[tuple[str, ...]] = [()]
    mask = constraint(None)
    while prefixes:
        for prefix, row in zip(prefixes, mask, strict=True):
            assert allowed(vocabulary, row) == may_follow(prefix, vocabulary.symbols, bounds)
            assert row.any(), prefix
        grown = mask.nonzero().tolist()
        yield from (prefixes[row] for row, token in grown if token == EOS_ID)
        going_on = [(row, token) for row, token in grown if token != EOS_ID]
        prefixes = [(*prefixes[row], *vocabulary.symbols_of([token])) for row, token in going_on]
        if prefixes:
            rows, tokens = torch.tensor(going_on).unbind(1)
            constraint.select(rows)
            mask = constraint(tokens)


@pytest.mark.parametrize(
    ("labels", "n_words", "max_length", "max_unary", "n_trees"),
    [
        ("A", 1, 4, 1, 1),
        ("A", 1, 12, 3, 3),
        ("A", 2, 15, 3, 38),
        ("A", 3, 15, 1, 24),
        ("A", 3, 15, 2, 122),
        ("A", 4, 16, 1, 146),
        ("A", 5, 13, 1, 91),
        ("AB", 1, 8, 2, 6),
        ("AB", 2, 11, 2, 134),
    ],
)
def test_constraint_allows_exactly_all_trees(
    labels: str, n_words: int, max_length: int, max_unary: int, n_trees: int
) -> None:
    vocabulary = vocabulary_of(labels)
    bounds = Bounds(words=some(n_words), max_length=max_length, max_unary=max_unary)
    found = list(reachable(vocabulary, bounds))
    brackets = (max_length - 1 - n_words) // 2
    assert sorted(found) == sorted(map(tuple, AllTrees(labels, max_unary).over(n_words, brackets)))
    assert len(found) == len(set(found)) == n_trees
    for tree in found:
        spans = Counter(each[1:] for each in delinearise(tree, some(n_words)).brackets)
        assert max(spans.values()) <= max_unary


def test_number_of_trees_is_schroeder_number() -> None:
    """Without unary brackets, the counts are Schröder numbers: 1, 3, 11, 45."""
    for n_words, n_trees in (2, 1), (3, 3), (4, 11):
        bounds = Bounds(words=some(n_words), max_length=40, max_unary=1)
        proper = [
            tree
            for tree in reachable(vocabulary_of("A"), bounds)
            if not any(b.end - b.start == 1 for b in delinearise(tree, some(n_words)).brackets)
        ]
        assert len(proper) == n_trees


@settings(max_examples=60)
@given(
    st.sampled_from([TWO_LABELS, NAMING]),
    st.lists(st.tuples(WORDS, st.integers(3, 40)), min_size=1, max_size=5),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
def test_tree_constraint_matches_may_follow_on_any_path(
    vocabulary: Symbols, sentences: list[tuple[list[str], int]], max_unary: int, seed: int
) -> None:
    """Rows of several sentences are extended, repeated and dropped, as in a search."""
    chance = torch.Generator().manual_seed(seed)
    bounds = [
        Bounds(words=words, max_length=len(words) + more, max_unary=max_unary)
        for words, more in sentences
    ]
    constraint = TreeConstraint(
        vocabulary, [b.words for b in bounds], [b.max_length for b in bounds], max_unary
    )
    of_row = list(range(len(bounds)))
    prefixes: list[list[str]] = [[] for _ in bounds]
    mask = constraint(None)
    while prefixes:
        for number, prefix, row in zip(of_row, prefixes, mask, strict=True):
            expected = may_follow(prefix, vocabulary.symbols, bounds[number])
            assert allowed(vocabulary, row) == expected != set()
        tokens = torch.multinomial(mask.float(), 1, generator=chance).squeeze(1)
        live = [row for row, token in enumerate(tokens.tolist()) if token != EOS_ID]
        if not live:
            break
        picks = torch.randint(len(live), (len(live),), generator=chance).tolist()
        rows = [live[pick] for pick in picks]
        constraint.select(torch.tensor(rows))
        tokens = tokens[rows]
        names = vocabulary.symbols_of(tokens.tolist())
        prefixes = [[*prefixes[row], name] for row, name in zip(rows, names, strict=True)]
        of_row = [of_row[row] for row in rows]
        mask = constraint(tokens)


class Noise:
    """A step with random log-probabilities, different for each row and each call."""

    def __init__(self, n_rows: int, vocab_size: int, seed: int) -> None:
        self._n_rows, self._vocab_size = n_rows, vocab_size
        self._chance = torch.Generator().manual_seed(seed)

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        drawn = torch.randn(self._n_rows, self._vocab_size, generator=self._chance)
        return (4 * drawn).log_softmax(dim=1)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        self._n_rows = len(rows)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(3, 20)), min_size=1, max_size=4),
    st.sampled_from([1, 2, 5, 21]),
    st.integers(0, 1000),
)
def test_every_search_returns_trees(
    sentences: list[tuple[int, int]], beam_size: int, seed: int
) -> None:
    """A wide beam has more rows than there are trees: rows without a possible tree do no harm."""
    words = [some(n) for n, _ in sentences]
    lengths = [n + more for n, more in sentences]
    constraint = TreeConstraint(TWO_LABELS, words, lengths, max_unary=2)
    assert isinstance(constraint, Constraint)
    step = Constrained(Noise(len(sentences), TWO_LABELS.vocab_size, seed), constraint)
    config = SearchConfig(beam_size=beam_size, length_penalty=0.3, n_best=beam_size)
    for outputs, sentence, longest in zip(
        search(step, lengths, config, EOS_ID), words, lengths, strict=True
    ):
        assert outputs
        for output in outputs:
            assert output.finished
            assert len(output.ids) + 1 <= longest
            delinearise(TWO_LABELS.symbols_of(output.ids), sentence)


def test_long_sentence_with_minimal_max_length_returns_tree() -> None:
    constraint = TreeConstraint(TWO_LABELS, [some(200)], [203])
    step = Constrained(Noise(1, TWO_LABELS.vocab_size, 0), constraint)
    ((output,),) = search(step, [203], SearchConfig(beam_size=3), EOS_ID)
    assert len(output.ids) == 202


def test_constraint_handles_forbidden_symbols() -> None:
    size = NAMING.vocab_size
    constraint = TreeConstraint(NAMING, [("cat", "dog")] * size, [6] * size)
    constraint(None)
    for _ in range(12):
        assert constraint(torch.arange(size)).shape == (size, size)


@pytest.mark.parametrize(("n_words", "max_length", "max_unary"), [(0, 9, 1), (3, 5, 1), (3, 9, 0)])
def test_constraint_without_possible_tree_raises(
    n_words: int, max_length: int, max_unary: int
) -> None:
    with pytest.raises(DecodingError, match="no tree over them"):
        TreeConstraint(TWO_LABELS, [some(1), some(n_words)], [9, max_length], max_unary)


def test_end_symbol_is_last_and_unique() -> None:
    bounds = Bounds(words=some(1), max_length=9)
    assert can_be_completed(["(A", "XX", ")A", EOS], bounds)
    for wrong in (
        [EOS],
        ["XX"],
        [")A"],
        ["(A", EOS],
        ["(A", "XX", EOS],
        ["(A", "XX", ")B"],
        ["(A", ")A"],
        ["(A", "XX", ")A", EOS, EOS],
        ["(A", "XX", ")A", "XX"],
        ["(A", "XX", "XX"],
    ):
        assert not can_be_completed(wrong, bounds)


def test_nameable_word_must_be_named() -> None:
    bounds = Bounds(words=("dog", "cat", "("), max_length=12)
    leaves = {"NN", "XX", "NN(cat)", "VB(cat)", "-LRB-(-LRB-)"}
    prefix = ["(A"]
    for expected in {"NN", "XX"}, {"NN(cat)", "VB(cat)"}, {"-LRB-(-LRB-)"}:
        assert may_follow(prefix, NAMING.symbols, bounds) & leaves == expected
        prefix.append(min(expected))
