"""Words that keep their full stop, for both tokenization and sentence splitting.

The lists were written for this project. They are short and cover common abbreviations.
"""


def word_list(text: str) -> frozenset[str]:
    """Return the words of a space-separated list."""
    return frozenset(text.split())


ENGLISH_TITLES = word_list(
    "Mr Mrs Ms Messrs Mme Mlle Dr Drs Prof Rev Hon Gov Sen Sens Rep Reps St Sr "
    "Gen Col Lt Maj Capt Cmdr Adm Brig Sgt Cpl Pvt Insp Supt"
)
ENGLISH_MONTHS = word_list("Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec")
ROMAN_NUMERALS = word_list("II III IV VI VII VIII IX XI XII XIII XIV XV")
"""Numerals that German writes with a full stop as ordinals, except words and initials."""
