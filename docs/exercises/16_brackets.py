"""Exercise 16: repair the brackets of a parse (section 6.3).

The parser writes a tree as a sequence of symbols. `(NP` opens a constituent, `)NP` closes it, and
`XX` is a word:

    (S (NP XX XX )NP (VP XX )VP )S

Nothing makes a network write a well-formed tree. Repair its output, reading from left to right:

- The first symbol is `(S`, the root, and no other constituent is an S. The root stays open until
  the end: `)S` closes only the constituents inside it.
- `)NP` closes the innermost open `(NP` and all constituents that were opened inside it. If no `(NP`
  is open, the symbol is ignored.
- Words beyond the number of words in the sentence are skipped.
- At the end, missing words are added to the root, after all other constituents are closed.
- Constituents without a word are removed.

Hint: keep a stack of the labels that are open. A constituent is empty if its opening bracket is the
last symbol of the result when it is closed; then remove the bracket instead of closing it.
"""


def repair(symbols: list[str], n_words: int) -> list[str]:
    """Return the symbols of a well-formed tree over `n_words` words.

    Args:
        symbols: Any sequence of brackets and words that begins with `(S`.
        n_words: The number of words of the sentence, at least one.
    """
    raise NotImplementedError
