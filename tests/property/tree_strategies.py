"""Hypothesis strategies for trees of any shape."""

from itertools import pairwise

from hypothesis import strategies as st

from transept.text.trees import Bracket, Tree

_CHARACTERS = st.characters(codec="utf-8", exclude_characters=" \t\n\r\f\v()")
_TOKEN = st.text(_CHARACTERS, min_size=1, max_size=6).filter(lambda token: token[0] != "<")
WORDS = st.one_of(_TOKEN, st.sampled_from(["-LRB-", "cat", ",", "10\u00a0000", "XX", "🐈"]))
TAGS = st.one_of(st.sampled_from(["NN", ",", "-NONE-", "XX", "''", "-LRB-", "NN-HL"]), _TOKEN)
LABELS = st.one_of(st.sampled_from(["S", "NP", "NP-SBJ-1", "TOP", "-X-", "NP=2"]), _TOKEN)


@st.composite
def trees(draw: st.DrawFn, max_words: int = 8, max_unary: int = 3, min_words: int = 1) -> Tree:
    """A tree with a root; at most `max_unary` brackets over the same words."""
    words = draw(st.lists(WORDS, min_size=min_words, max_size=max_words))
    tags = draw(st.lists(TAGS, min_size=len(words), max_size=len(words)))
    brackets: list[Bracket] = []

    def grow(start: int, end: int, chain: int) -> None:
        brackets.append(Bracket(draw(LABELS), start, end))
        if chain < max_unary and draw(st.booleans()):
            grow(start, end, chain + 1)
        elif end - start > 1:
            cuts = draw(st.sets(st.integers(start + 1, end - 1), min_size=1))
            edges = [start, *sorted(cuts), end]
            for left, right in pairwise(edges):
                if right - left > 1 or draw(st.booleans()):
                    grow(left, right, 1)

    grow(0, len(words), 1)
    return Tree(tuple(words), tuple(tags), tuple(brackets))
