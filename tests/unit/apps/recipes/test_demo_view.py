"""Commands printed by the demo can be pasted into a shell."""

import shlex

import pytest

from transept.apps.recipes.view import _quoted


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("runs/demo/run", "runs/demo/run"),
        ("It rains.", "'It rains.'"),
        ("It isn't so.", '"It isn\'t so."'),
    ],
)
def test_sentence_with_apostrophe_is_double_quoted(word: str, shown: str) -> None:
    assert _quoted(word) == shown


@pytest.mark.parametrize("word", ["it's $5", "it's `x`", 'say "it\'s"', "it's \\n", "Isn't it!"])
def test_special_characters_survive_the_shell(word: str) -> None:
    assert shlex.split(_quoted(word)) == [word]
    assert not _quoted(word).startswith('"')
