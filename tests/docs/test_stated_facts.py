"""Facts that the documentation states in words, compared with the files that they are about."""

from pathlib import Path

import pytest

from transept.apps.recipes import recipe

ROOT = Path(__file__).parents[2]
NUMBERS = {7: "seven", 8: "eight", 9: "nine", 10: "ten"}
KINDS = {"bpe": "byte pairs", "unigram": "a unigram language model"}


@pytest.mark.parametrize("name", ["wmt14-en-fr-big", "europarl-en-fr-base"])
def test_deviations_name_the_vocabulary_of_english_french_recipes(name: str) -> None:
    rows = (ROOT / "docs/deviations.md").read_text(encoding="utf-8").splitlines()
    (row,) = (row for row in rows if "word pieces for English-French" in row)
    ours = row.split("|")[2].strip()
    assert ours.startswith(KINDS[recipe.load(name).vocabulary.kind])


def test_changelog_states_the_number_of_walkthrough_chapters() -> None:
    chapters = list((ROOT / "docs/walkthrough").glob("[0-9]*.py"))
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"in {NUMBERS[len(chapters)]} chapters" in text
