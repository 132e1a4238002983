"""Commands that the demo prints can be read, and pasted."""

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
def test_a_sentence_is_quoted_as_a_person_would(word: str, shown: str) -> None:
    assert _quoted(word) == shown


@pytest.mark.parametrize("word", ["it's $5", "it's `x`", 'say "it\'s"', "it's \\n", "Isn't it!"])
def test_what_a_shell_would_read_otherwise_stays_what_it_is(word: str) -> None:
    assert shlex.split(_quoted(word)) == [word]
    assert not _quoted(word).startswith('"')
