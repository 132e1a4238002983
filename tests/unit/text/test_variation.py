"""Training pairs that are changed to teach a model the text that users write."""

import os
import subprocess
import sys

import pytest

from transept.errors import ConfigError
from transept.text.spans import MASKS
from transept.text.variation import Variation

NAME, FIGURE = MASKS[0], MASKS[len(MASKS) // 2]
LANGUAGES = ("en", "de")
ALWAYS = 0.999999
CHILD = """
from transept.text.variation import Variation
# `Ulm` is first found in `Ulmer`, so both names begin at the same place.
pairs = [(f"{n}: Ulmer like Ulm.", f"{n}: Ulmer wie Ulm.") for n in range(40)]
print([Variation(names=0.999999)(pair, ("en", "de")) for pair in pairs])
"""


def test_shared_spans_are_always_masked_in_the_form_of_each_side() -> None:
    pair = "It costs 3.5 euro at a@b.de.", "Es kostet 3,5 Euro bei a@b.de."
    assert Variation()(pair, LANGUAGES) == (
        f"It costs {FIGURE} euro at {NAME}.",
        f"Es kostet {FIGURE} Euro bei {NAME}.",
    )


def test_spans_of_one_side_are_left() -> None:
    pair = "It costs 3.5 euro.", "Es kostet dreieinhalb Euro."
    assert Variation()(pair, LANGUAGES) == pair


def test_names_are_masked_on_both_sides() -> None:
    pair = "I live in Hamburg.", "Ich wohne in Hamburg."
    found = {Variation(names=ALWAYS, seed=seed)(pair, LANGUAGES) for seed in range(20)}
    assert (f"I live in {NAME}.", f"Ich wohne in {NAME}.") in found


def test_unstopped_removes_the_stop_of_both_sides_or_none() -> None:
    vary = Variation(unstopped=ALWAYS)
    assert vary(("It rains.", "Es regnet."), LANGUAGES) == ("It rains", "Es regnet")
    assert vary(("It rains.", "Es regnet"), LANGUAGES) == ("It rains.", "Es regnet")


def test_lowercase_changes_only_the_source() -> None:
    source, target = Variation(lowercase=ALWAYS)(
        ("I live in Bonn.", "Ich wohne in Bonn."), LANGUAGES
    )
    assert source.lower() == source[0].lower() + source[1:] == "i live in bonn."
    assert target == "Ich wohne in Bonn."


def test_misspelt_source_has_wrong_letters_but_right_names() -> None:
    pair = f"We don't know why Anna lives near {NAME}.", f"Warum wohnt Anna nahe {NAME}?"
    found = [Variation(misspelt=ALWAYS, seed=seed)(pair, LANGUAGES) for seed in range(40)]
    sources = [source for source, _ in found]
    assert {target for _, target in found} == {pair[1]}
    assert pair[0] not in sources
    assert len(set(sources)) > 20
    assert all("Anna" in source and NAME in source and source[:3] == "We " for source in sources)
    assert 5 < sum("dont" in source for source in sources) < 35, "about half lack the apostrophe"


def test_misspelt_german_may_lack_umlauts() -> None:
    found = {Variation(misspelt=ALWAYS, seed=seed).misspell("Die Tür ist zu.") for seed in range(9)}
    assert found == {"Die Tür ist zu.", "Die Tuer ist zu."}


def test_inserted_mask_is_in_the_same_place_of_both_sides() -> None:
    for seed in range(10):
        source, target = Variation(inserted=ALWAYS, seed=seed)(("Go.", "Geh."), LANGUAGES)
        assert source.replace("Go", "Geh") == target
        assert NAME in source


def test_variation_depends_only_on_pair_and_seed() -> None:
    pairs = [(f"I saw Bonn {n} times.", f"Ich sah Bonn {n} Mal.") for n in range(200)]
    first, again, other = (
        [Variation(names=0.5, unstopped=0.5, seed=seed)(pair, LANGUAGES) for pair in pairs]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_variation_is_the_same_in_every_process() -> None:
    found = {
        subprocess.check_output(
            [sys.executable, "-c", CHILD], env={**os.environ, "PYTHONHASHSEED": str(seed)}
        )
        for seed in range(4)
    }
    assert len(found) == 1


def test_fraction_outside_its_range_is_rejected() -> None:
    with pytest.raises(ConfigError, match="names"):
        Variation(names=1.5)
