"""French typography, from the source to the translation."""

import pytest

from transept.text.french import spaced, straight, with_amounts, with_guillemets
from transept.text.protection import Masked
from transept.text.spans import MASKS
from transept.text.variation import Variation

TO_FRENCH, FROM_FRENCH = ("en", "fr"), ("fr", "en")
FIGURE, OTHER_FIGURE = MASKS[len(MASKS) // 2 :][:2]


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
        ("IT IS SUMMER", "C'est l'été à Évian.", "C'EST L'ÉTÉ À ÉVIAN"),
        ("“Where is it?”", '"Où est-ce ?"', "« Où est-ce ? »"),
        ("The “water” of «life»", 'L\'"eau" de «vie»', "L'« eau » de « vie »"),
        ("It’s ‘new’.", 'C\'est "nouveau".', "C'est « nouveau »."),
        ("He said ‘yes’.", 'Il a dit "oui".', "Il a dit « oui »."),
        ("He said 'yes'.", 'Il a dit "oui".', "Il a dit 'oui'."),
        ("“It is late.", '"Il est tard.', "« Il est tard."),
        ("We go,” he said.", 'Nous partons", dit-il.', "Nous partons », dit-il."),
        ("It rose by 7.5%.", f"Il a augmenté de {FIGURE}%.", "Il a augmenté de 7,5 %."),
        ("About $3.2 million", f"Environ ${FIGURE} millions", "Environ 3,2 millions de dollars"),
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
        ("It costs $5.", f"It costs {FIGURE}.", ["5 $"]),
        ("It costs $5 million.", "It costs $5 million.", []),
        ("We open at 9:00.", f"We open at {FIGURE}.", ["9 h"]),
        ("The word “{x}”", f"The word {MASKS[0]}", ["« {x} »"]),
        ("The word ‘{x}’", f"The word {MASKS[0]}", ["« {x} »"]),
        ('The word "{x}"', f"The word {MASKS[0]}", ['"{x}"']),
    ],
)
def test_figures_are_written_as_in_french(source: str, text: str, forms: list[str]) -> None:
    masked = Masked.of(source, languages=TO_FRENCH)
    assert (masked.text, [span.target for span in masked.spans]) == (text, forms)


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        # The model has learned `15 heures` as the symbol for `15 h` and the rest of the word.
        ("It starts at 3:30 p.m.", f"Il commence à {FIGURE}eures.", "Il commence à 15 h 30."),
        ("It starts at 3 pm.", f"Il commence à {FIGURE}eures.", "Il commence à 15 h."),
        ("Ten past, at 9:10 am", f"À {FIGURE} heures", "À 9 h 10"),
        ("It takes 2.5 hours.", f"Il faut {FIGURE} heures.", "Il faut 2,5 heures."),
        ("It takes 2.5 hours.", f"Il faut {FIGURE}eures.", "Il faut 2,5."),
        ("Sent on 2026-11-17.", f"Envoyé sur {FIGURE}.", "Envoyé le 2026-11-17."),
        ("Sent to {name}.", f"Envoyé à {MASKS[0]}.", "Envoyé à {name}."),
        ("From 1,250 to {n}", f"De {FIGURE} à {MASKS[0]}", "De 1\u202f250 à {n}"),
    ],
)
def test_words_fit_the_times_and_dates_between_them(
    source: str, output: str, expected: str
) -> None:
    assert Masked.of(source, languages=TO_FRENCH).restored(output) == expected


def test_dates_with_months_are_contracted_with_the_preposition() -> None:
    source = "From June 12 to July 1"
    masked = Masked.of(source, languages=TO_FRENCH, all_figures=True)
    assert masked.restored(f"De {FIGURE} à {OTHER_FIGURE}") == "De 12 juin au 1er juillet"
    output = f"du {FIGURE} jusqu'à {OTHER_FIGURE}"
    assert masked.restored(output) == "Du 12 juin jusqu'au 1er juillet"


def test_alignment_counts_no_word_that_a_time_replaces() -> None:
    masked = Masked.of("Open at 9:10 am today", languages=TO_FRENCH)
    links = tuple((number, number) for number in range(4))
    output = f"Ouvert à {FIGURE} heures aujourd'hui"
    assert masked.restored(output) == "Ouvert à 9 h 10 aujourd'hui"
    assert {j for _, j in masked.realigned((*links, (3, 4)), output)} <= set(range(6))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("jusqu'à 100$ pour", "jusqu'à 100 $ pour"),
        ("devoir $100 pour un sac", "devoir 100 $ pour un sac"),
        ("$10 à 25$.", "10 $ à 25 $."),
        ("de $32,9 milliards à partir", "de 32,9 milliards de dollars à partir"),
        ("€2 millions", "2 millions d'euros"),
        ("record de $290,4 millions de dollars", "record de 290,4 millions de dollars"),
        ("$4 950 millions", "4 950 millions de dollars"),
        ("C$4 et $5.3tn", "C$4 et $5.3tn"),
        ("50% et 50 %, 90°F", "50 % et 50 %, 90 °F"),
        ("%d%% et 100%d", "%d%% et 100%d"),
    ],
)
def test_signs_of_currencies_and_units_follow_the_number(text: str, expected: str) -> None:
    assert with_amounts(text) == expected
    assert with_amounts(expected) == expected


def test_spans_without_symbols_keep_their_signs() -> None:
    masked = Masked.of("Run `echo $1` now", (), languages=TO_FRENCH)
    assert masked.restored("Exécuter `echo $1`") == "Exécuter `echo $1`"


def test_unpaired_quotation_mark_does_not_become_a_guillemet() -> None:
    assert with_guillemets('"oui" et "non') == '«oui» et "non'
    assert with_guillemets('"Il dit "oui, dit-elle') == '"Il dit "oui, dit-elle'


@pytest.mark.parametrize(
    ("source", "text", "forms"),
    [
        ("L’an 2010 300 personnes.", "L'an 2010 300 personnes.", []),
        ("Il coûte 12 345,50 €.", f"Il coûte {FIGURE}.", ["€12,345.50"]),
        ("Il y a 14\u00a0000\u00a0000 ans.", f"Il y a {FIGURE} ans.", ["14,000,000"]),
        ("À 15 h 30, il pleut.", f"À {FIGURE}, il pleut.", ["15:30"]),
        ("N’entrez PAS !", "N'entrez pas !", []),
        ("Le stade a 48.500 places.", f"Le stade a {FIGURE} places.", ["48,500"]),
        ("Il vaut 0.125 ou 1.25.", f"Il vaut {FIGURE} ou {OTHER_FIGURE}.", ["0.125", "1.25"]),
        ("5 € ou 1€20", f"{FIGURE} ou {OTHER_FIGURE}", ["€5", "€1.20"]),
        ("45 k€, C$4", "45 k€, C$4", []),
        ("La marche dure 2h05.", f"La marche dure {FIGURE}.", ["2 hours 5 minutes"]),
        ("Elle dure 2 h.", f"Elle dure {FIGURE}.", ["2 hours"]),
        ("Ouvert de 9h à 17 h.", f"Ouvert de {FIGURE} à {OTHER_FIGURE}.", ["9:00", "17:00"]),
        ("entre 8 h et 10 h 30", f"entre {FIGURE} et {OTHER_FIGURE}", ["8:00", "10:30"]),
        ("à 2 h de Paris, à 35 h", "à 2 h de Paris, à 35 h", []),
        ("Il a dormi 10 h.", "Il a dormi 10 h.", []),
        ("Il est midi et demi.", f"Il est {FIGURE}.", ["12:30"]),
        ("Il part pendant 1 h 30.", f"Il part pendant {FIGURE}.", ["1 hour 30 minutes"]),
        ("Il part en 10:30.", f"Il part en {FIGURE}.", ["10:30"]),
        ("La question n°7, n° 8", "La question n° 7, n° 8", []),
        ("le 1ᵉʳ mai, Mᵐᵉ Roy", "le 1er mai, Mme Roy", []),
        ("au XIVe et au XIXème siècle", "au 14e et au 19ème siècle", []),
        ("Le IIIe Reich, XXe rapport", "Le IIIe Reich, XXe rapport", []),
        ("Le mot «eau» (froide) (OMS)", 'Le mot " eau" ( froide) (OMS)', []),
        ("Le mot « eau »", "Le mot « eau »", []),
        ("Le mot “{x}”", f"Le mot {MASKS[0]}", ['"{x}"']),
        ("Le mot ‘{x}’", f"Le mot {MASKS[0]}", ["'{x}'"]),
    ],
)
def test_french_is_read_as_the_model_knows_it(source: str, text: str, forms: list[str]) -> None:
    masked = Masked.of(source, languages=FROM_FRENCH)
    assert (masked.text, [span.target for span in masked.spans]) == (text, forms)


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("Le mot « eau ».", "The word « water ».", 'The word "water".'),
        ("Le mot “eau”.", "The word “water”.", 'The word "water".'),
        ("Le mot ‘eau’.", 'The word "water".', "The word 'water'."),
        ("Ma voiture (bleue)", "My car ( blue)", "My car (blue)"),
    ],
)
def test_translation_from_french_has_straight_quotation_marks(
    source: str, output: str, expected: str
) -> None:
    assert Masked.of(source, languages=FROM_FRENCH).restored(output) == expected


def test_spans_without_symbols_keep_their_marks() -> None:
    masked = Masked.of("La clé `«n°7»`", (), languages=FROM_FRENCH)
    assert masked.text == "La clé `«n°7»`"
    assert masked.restored("The key `«n°7»`") == "The key `«n°7»`"


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
    # The whole word is masked, and not its first letter.
    for target in ("Il part à 15 heures.", "Il part à 15 h."):
        assert Variation()(("He leaves at 3 pm.", target), TO_FRENCH) == (
            f"He leaves at {FIGURE}.",
            f"Il part à {FIGURE}.",
        )
    german = "It’s here.", "Es ist hier."
    assert Variation()(german, ("en", "de")) == german


def test_misspelt_french_lacks_accents() -> None:
    pair = "Les élèves étaient très fatigués.", "The pupils were very tired."
    found = {Variation(misspelt=0.999999, seed=seed)(pair, FROM_FRENCH)[0] for seed in range(30)}
    assert any(text.isascii() for text in found)


def test_words_after_opening_marks_are_read_after_a_space() -> None:
    masked = Masked.of('My “new” car (blue), the person(s), "{x}"', languages=TO_FRENCH)
    assert masked.text == f"My “ new” car ( blue), the person(s), {MASKS[0]}"
    written = f'Ma voiture " neuve" ( bleue), la personne, {MASKS[0]}'
    assert masked.restored(written) == 'Ma voiture « neuve » (bleue), la personne, "{x}"'
    assert masked.with_marks_joined().text == masked.text.replace("( ", "(").replace("“ ", "“")


@pytest.mark.parametrize("text", ["He said ( loudly ) “no”", "It rains."])
def test_marks_that_stand_alone_are_left(text: str) -> None:
    masked = Masked.of(text, languages=TO_FRENCH)
    assert masked.text == text
    assert masked.with_marks_joined() is masked


def test_alignment_counts_the_words_of_the_sentence_and_its_french_form() -> None:
    source = "- The “word” (new) costs $3 million"
    masked = Masked.of(source, languages=TO_FRENCH)
    output = 'Le " mot" ( nouveau) coûte $3 millions'
    shown = masked.restored(output)
    assert shown == "- Le « mot » (nouveau) coûte 3 millions de dollars"
    assert len(masked.text.split()) == len(output.split()) == 8
    here, there = source.split(), shown.split()
    links = masked.realigned(((0, 0), (2, 2), (4, 4), (5, 5), (6, 6), (7, 7)), output)
    assert [(here[i], there[j]) for i, j in links] == [
        ("-", "-"),
        ("The", "Le"),
        ("“word”", "mot"),
        ("(new)", "(nouveau)"),
        ("costs", "coûte"),
        ("$3", "3"),
        ("million", "millions"),
    ]
