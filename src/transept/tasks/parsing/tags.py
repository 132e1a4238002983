"""The tags that XX left out.

evalb leaves punctuation out by its tag, on either side by itself. So a tree is written with the
tags of the sentence, or, where nobody gave them, at least with those of its punctuation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from transept.errors import DataError
from transept.tasks.parsing.leaves import XX
from transept.text.trees import Tree

_PUNCTUATION: Final = {
    word: tag
    for tag, words in {
        ",": ",",
        ".": ". ? !",
        ":": ": ; -- – — ... … ..",
        "``": "`` ` “ ‘",
        "''": "'' ”",
        "-LRB-": "-LRB- -LCB- -LSB- ( [ {",
        "-RRB-": "-RRB- -RCB- -RSB- ) ] }",
        "HYPH": "-",
        "$": "$ £ € ¥",
        "#": "#",
    }.items()
    for word in words.split()
}
_APOSTROPHES: Final = frozenset("'’")


def with_tags(tree: Tree, tags: Sequence[str] | None = None) -> Tree:
    """The tree with these tags; None: with those that its words show."""
    chosen = punctuation_tags(tree.words) if tags is None else tuple(tags)
    if len(chosen) != len(tree.words):
        raise DataError(
            f"there are {len(chosen)} tags for the {len(tree.words)} words of "
            f"{' '.join(tree.words[:8])!r} …: each word needs one"
        )
    return replace(tree, tags=chosen)


def punctuation_tags(words: Sequence[str]) -> tuple[str, ...]:
    """The Penn tags of punctuation, and XX for words.

    Example:
        >>> punctuation_tags(["“", "Yes", ",", "”", "said", "Anna", "."])
        ('``', 'XX', ',', "''", 'XX', 'XX', '.')
    """
    return tuple(_tags(words))


def _tags(words: Sequence[str]) -> Iterator[str]:
    inside = False
    before = ""
    for word in words:
        if word == '"':
            yield "''" if inside else "``"
            inside = not inside
        elif word in _APOSTROPHES:
            # The genitive of a plural looks like the end of a quotation, and is more common.
            yield "POS" if before.endswith(("s", "S")) else "''"
        else:
            yield _PUNCTUATION.get(word, XX)
        before = word
