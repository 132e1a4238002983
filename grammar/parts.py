"""The parts of a meaning, numbered by their place in it.

Whoever says a meaning gives each token that he writes the numbers of the parts that the token
says. Two tokens of two languages correspond when they share a part.
"""

Token = tuple[str, tuple[int, ...]]
"""A word or a punctuation mark, and the parts that it says."""

VERB, AUXILIARY, NOT, ADVERB, MANNER, LINK, COMMA, STOP = range(8)
SUBJECT, OBJECT, RECIPIENT, PLACE, TIME, QUALITY, JOINED = range(8, 64, 8)
"""Of a clause, counted from where it begins. The second row are phrases, of eight parts each."""

DETERMINER, COUNT, DEGREE, ADJECTIVE, NOUN, OWNER, RELATIVE, PREPOSITION = range(8)
"""Of a phrase, counted from where it begins."""


def inside(part: int) -> int:
    """Where a clause or a phrase that is itself a part begins to count."""
    return 128 * (part + 1)
