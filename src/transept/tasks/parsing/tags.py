"""The tags that XX omits.

evalb ignores punctuation by its tag, separately in the gold tree and the parse. So a tree is
written with the tags of the sentence or, if they are not given, at least with punctuation tags.
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
    """Return the tree with these tags. None: only punctuation is tagged."""
    chosen = punctuation_tags(tree.words) if tags is None else tuple(tags)
    if len(chosen) != len(tree.words):
        raise DataError(
            f"{len(chosen)} tags were given for the {len(tree.words)} words of "
            f"{' '.join(tree.words[:8])!r} …; give one tag per word"
        )
    return replace(tree, tags=chosen)


def punctuation_tags(words: Sequence[str]) -> tuple[str, ...]:
    """Return the Penn tags of punctuation, and XX for words.

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
            # A plural genitive looks like a closing quote, and is more common.
            yield "POS" if before.endswith(("s", "S")) else "''"
        else:
            yield _PUNCTUATION.get(word, XX)
        before = word
