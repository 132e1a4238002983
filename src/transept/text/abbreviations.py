"""Words that keep their full stop: what tokenisation and sentence splitting both must know.

The lists are our own and short: what is common in running text.
"""


def word_list(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


ENGLISH_TITLES = word_list(
    "Mr Mrs Ms Messrs Mme Mlle Dr Drs Prof Rev Hon Gov Sen Sens Rep Reps St Sr "
    "Gen Col Lt Maj Capt Cmdr Adm Brig Sgt Cpl Pvt Insp Supt"
)
ENGLISH_MONTHS = word_list("Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec")
ROMAN_NUMERALS = word_list("II III IV VI VII VIII IX XI XII XIII XIV XV")
"""Those that German writes as ordinals, with a full stop, and that are no word or initial."""
