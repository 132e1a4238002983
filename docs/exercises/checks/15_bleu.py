"""Check of exercise 15."""

from comparing import must

from transept.evaluation.bleu import Bleu
from transept.evaluation.scores import Convention

PACKAGE = Bleu(convention=Convention(name="words", signature="words"), tokenize=str.split)
CAT = "the cat is on the mat today"
BREVITY = ": is the brevity penalty right?"
CASES = [
    ("a perfect translation", [CAT], [CAT], ""),
    ("a translation without a common word", ["ein Hund schläft dort"], [CAT], ""),
    (
        "'the cat the cat is on the mat'",
        ["the cat the cat is on the mat"],
        [CAT],
        ": an n-gram counts at most as often as it occurs in the reference",
    ),
    ("a translation without the last two words", [CAT[:-10]], [CAT], BREVITY),
    ("a translation that is too long", [f"{CAT} and tomorrow"], [CAT], BREVITY),
    (
        "a corpus of a perfect short sentence and a poor long one",
        ["it is raining now", "the old man has a dog and he reads in the big house"],
        ["it is raining now", "the old man with the dog is reading a book in the large garden"],
        ": sum the counts over the corpus, do not average sentences",
    ),
]


def check(student):
    """Compare with the package in cases that separate typical mistakes."""
    for name, translations, references, hint in CASES:
        found = student.bleu(translations, references)
        must(found is not None, "bleu returns None: is there a return statement?")
        expected = PACKAGE.measure(translations, references).value
        must(
            abs(found - expected) < 1e-3,
            f"{name} has a BLEU of {expected:.2f}, not {found:.2f}{hint}",
        )
