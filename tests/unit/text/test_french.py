"""French typography, from the source to the translation."""

import pytest

from transept.text.french import spaced, straight
from transept.text.protection import Masked
from transept.text.spans import MASKS
from transept.text.variation import Variation

TO_FRENCH, FROM_FRENCH = ("en", "fr"), ("fr", "en")
FIGURE = MASKS[len(MASKS) // 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L’eau d’ici", "L'eau d'ici"),
        ('l"air', "l'air"),
        ("l’«eau»", "l'«eau»"),
        ("les élèves’ et ‘oui’", "les élèves’ et ‘oui’"),
        ('il dit "oui" et "non"', 'il dit "oui" et "non"'),
    ],
)
def test_straight_changes_only_apostrophes(text: str, expected: str) -> None:
    assert straight(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Vraiment?", "Vraiment ?"),
        ("Vraiment ?!", "Vraiment ?!"),
        ("Vraiment\u202f?", "Vraiment ?"),
        ("«Oui»", "« Oui »"),
        ("À 12:30, le score est de 3:1.", "À 12:30, le score est de 3:1."),
        ("Note: http://x.fr", "Note : http://x.fr"),
        ('"Pourquoi?" dit-il', '"Pourquoi ?" dit-il'),
        ("Attends…", "Attends…"),
        ("Quoi...?", "Quoi...?"),
        ("Il dit oui .", "Il dit oui."),
        ("Installez .NET", "Installez .NET"),
    ],
)
def test_spaced_writes_spaces_where_french_has_them(text: str, expected: str) -> None:
    assert spaced(text) == expected
    assert spaced(expected) == expected


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("Really?", "Vraiment.", "Vraiment ?"),
        ("Really", "Vraiment ?", "Vraiment"),
        ("Save changes", "Enregistrer les modifications.", "Enregistrer les modifications"),
        ("He said yes.", "Il a dit « oui ».", "Il a dit oui."),
        ('He said "yes".', 'Il a dit "oui.', 'Il a dit "oui".'),
        ("DO NOT ENTER", "N'entrez pas.", "N'ENTREZ PAS"),
    ],
)
def test_translation_to_french_follows_the_source(source: str, output: str, expected: str) -> None:
    assert Masked.of(source, languages=TO_FRENCH).restored(output) == expected


@pytest.mark.parametrize(
    ("source", "text", "forms"),
    [
        ("It’s $12,345.67.", f"It's {FIGURE}.", ["12\u202f345,67 $"]),
        ("We meet at 3:30 pm.", f"We meet at {FIGURE}.", ["15 h 30"]),
        ("We meet at 3 pm.", f"We meet at {FIGURE}.", ["15 h"]),
    ],
)
def test_figures_are_written_as_in_french(source: str, text: str, forms: list[str]) -> None:
    masked = Masked.of(source, languages=TO_FRENCH)
    assert (masked.text, [span.target for span in masked.spans]) == (text, forms)


@pytest.mark.parametrize(
    ("source", "text", "forms"),
    [
        ("L’an 2010 300 personnes.", "L'an 2010 300 personnes.", []),
        ("Il coûte 12 345,50 €.", f"Il coûte {FIGURE}.", ["€12,345.50"]),
        ("Il y a 14\u00a0000\u00a0000 ans.", f"Il y a {FIGURE} ans.", ["14,000,000"]),
        ("À 15 h 30, il pleut.", f"À {FIGURE}, il pleut.", ["15:30"]),
        ("N’entrez PAS !", "N'entrez pas !", []),
    ],
)
def test_french_is_read_as_the_model_knows_it(source: str, text: str, forms: list[str]) -> None:
    masked = Masked.of(source, languages=FROM_FRENCH)
    assert (masked.text, [span.target for span in masked.spans]) == (text, forms)


def test_code_keeps_its_apostrophes() -> None:
    masked = Masked.of("L’outil `d’ici` suffit.", languages=FROM_FRENCH)
    assert masked.text == f"L'outil {MASKS[0]} suffit."
    assert masked.spans[0].source == "`d’ici`"


def test_training_pairs_have_straight_apostrophes_and_masked_figures() -> None:
    pair = "It’s 12,345 km.", "C’est à 12 345 km."
    assert Variation()(pair, TO_FRENCH) == (f"It's {FIGURE} km.", f"C'est à {FIGURE} km.")
    assert Variation()(pair[::-1], FROM_FRENCH) == (
        f"C'est à {FIGURE} km.",
        f"It's {FIGURE} km.",
    )
    german = "It’s here.", "Es ist hier."
    assert Variation()(german, ("en", "de")) == german


def test_misspelt_french_lacks_accents() -> None:
    pair = "Les élèves étaient très fatigués.", "The pupils were very tired."
    found = {Variation(misspelt=0.999999, seed=seed)(pair, FROM_FRENCH)[0] for seed in range(30)}
    assert any(text.isascii() for text in found)
