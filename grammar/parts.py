"""The parts of a meaning, numbered by their position in it.

`english.py` and `german.py` label each token with the numbers of the parts that it expresses. Two
tokens of the two languages correspond if they share a part.
"""

Token = tuple[str, tuple[int, ...]]
"""A word or a punctuation mark, and the parts that it expresses."""

VERB, AUXILIARY, NOT, ADVERB, MANNER, LINK, COMMA, STOP = range(8)
SUBJECT, OBJECT, RECIPIENT, PLACE, TIME, QUALITY, JOINED = range(8, 64, 8)
"""The parts of a clause, relative to its start. The second row are phrases of eight parts each."""

DETERMINER, COUNT, DEGREE, ADJECTIVE, NOUN, OWNER, RELATIVE, PREPOSITION = range(8)
"""The parts of a phrase, relative to its start."""


def inside(part: int) -> int:
    """Return the first number of the parts inside a part that is a clause or a phrase."""
    return 128 * (part + 1)
