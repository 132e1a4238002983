"""Check of exercise 9."""

from comparing import must

from transept.text.tokenizer import FIRST_LEARNT
from transept.text.training import train_tokenizer

TEXT = {"banana": 12, "cabana": 7, "ban": 10, "cab": 3, "nana": 4, "newest": 7, "lowest": 3}
N_MERGES = 6


def check(student):
    """Single words first, then the merges that the package's tokenizer learns from a text."""
    pair = student.most_frequent_pair({("▁", "a", "b"): 1, ("▁", "c", "b"): 1, ("x", "y"): 3})
    must(pair is not None, "most_frequent_pair returns None: is there a return statement?")
    must(
        pair == ("x", "y"),
        f"in a text with ▁ab, ▁cb and three times xy, the most frequent pair is ('x', 'y'), "
        f"not {pair}: does a pair count as often as its word occurs?",
    )
    for word, pair, expected in (
        (("a", "a", "a"), ("a", "a"), ("aa", "a")),
        (("a", "b", "a", "b"), ("a", "b"), ("ab", "ab")),
        (("ab", "c", "a", "bc"), ("a", "bc"), ("ab", "c", "abc")),
        (("x", "y", "z"), ("y", "x"), ("x", "y", "z")),
    ):
        found = student.merge({word: 5}, pair)
        must(
            found == {expected: 5},
            f"merging {pair} in {word}, which occurs 5 times, gives {found}, not {{{expected}: 5}}",
        )
    words = {("▁", *word): n for word, n in TEXT.items()}
    for number, expected in enumerate(learned(), start=1):
        pair = student.most_frequent_pair(words)
        must(
            "".join(pair) == expected,
            f"merge {number} of {TEXT} is {pair}, but the package's tokenizer learns {expected!r}",
        )
        words = student.merge(words, pair)


def learned():
    """The merges of sentencepiece for the same text, in order."""
    n_characters = len({"▁"}.union(*TEXT))
    text = " ".join(word for word, n in TEXT.items() for _ in range(n))
    size = FIRST_LEARNT + n_characters + N_MERGES
    tokenizer = train_tokenizer([text], vocab_size=size, kind="bpe")
    return tokenizer.pieces_of(range(FIRST_LEARNT, FIRST_LEARNT + N_MERGES))
